//! What goes to the log.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Modules that write whole messages to their log: the WebSocket library, with a vendor's key among them; the SIP stack,
/// with numbers, proofs of passwords and the keys of encrypted sound.
const SHOWS_KEYS: [&str; 2] = ["tungstenite::handshake", "rsipstack"];

/// The MCP library logs what it also returns.
const REPEATS: &str = "rmcp";

/// The filter that `SAYBACK_LOG` asks for; errors only, if it asks for nothing that is one. No filter shows a key.
pub(crate) fn filter(wanted: Option<&str>) -> EnvFilter {
    // A directive for a module wins over one for what is around it; those below it, and the same one, are left out.
    let directives = wanted
        .unwrap_or("error")
        .split(',')
        .filter(|directive| !SHOWS_KEYS.iter().any(|shows| directive.contains(shows)));
    let directives = directives.collect::<Vec<_>>().join(",");
    let filter = EnvFilter::try_new(if directives.is_empty() { "error" } else { &directives });
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("error"));
    // What it calls an error is one of a tool's server, and is told where that tool is called.
    let asked = wanted.is_some_and(|wanted| wanted.contains(REPEATS));
    let filter = match format!("{REPEATS}=off").parse() {
        Ok(off) if !asked => filter.add_directive(off),
        Ok(_) | Err(_) => filter,
    };
    SHOWS_KEYS.iter().fold(filter, |filter, shows| match format!("{shows}=off").parse() {
        Ok(off) => filter.add_directive(off),
        Err(_) => filter.add_directive(LevelFilter::OFF.into()),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(wanted: Option<&str>) -> String {
        let page = Page::default();
        let pages = page.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter(wanted))
            .with_writer(move || pages.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::trace!(target: "tungstenite::handshake::client", "Request: sk-secret");
            tracing::error!(target: "rsipstack::transport::udp", "a=crypto:1 secret");
            tracing::trace!(target: "tungstenite::protocol", "a frame");
            tracing::error!("a fault");
        });
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_filter_shows_a_key() {
        for wanted in [
            None,
            Some("trace"),
            Some("tungstenite=trace"),
            Some("tungstenite::handshake=trace"),
            Some("info,tungstenite::handshake::client=trace"),
            Some("info"),
            Some("rsipstack=info"),
            Some("rsipstack::transport=trace,info"),
        ] {
            let page = logged(wanted);
            assert!(!page.contains("secret"), "{wanted:?}: {page}");
        }
        assert!(logged(Some("trace")).contains("a frame"), "the rest of what was asked for is there");
    }

    #[test]
    fn nonsense_logs_errors_only() {
        for wanted in [None, Some(""), Some("=/=,,"), Some("tungstenite::handshake=trace")] {
            let page = logged(wanted);
            assert!(page.contains("a fault") && !page.contains("a frame"), "{wanted:?}: {page}");
        }
    }
}

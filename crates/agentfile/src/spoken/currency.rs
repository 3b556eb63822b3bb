//! Currencies and what people call them.

use super::Language;

/// One and many of the unit, one and many of its hundredth.
pub(super) type Names = [&'static str; 4];

/// How many decimals a currency has.
pub(super) fn decimals(code: &str) -> usize {
    match code {
        "JPY" | "KRW" | "VND" | "CLP" | "ISK" => 0,
        "BHD" | "KWD" | "OMR" | "TND" | "JOD" => 3,
        _ => 2,
    }
}

/// What the currency is called, if that is known here.
pub(super) fn names(code: &str, language: Language) -> Option<Names> {
    match language {
        Language::English => english(code),
        Language::German => german(code),
        Language::Spanish => spanish(code),
        Language::French => french(code),
        Language::Portuguese => portuguese(code),
        Language::Japanese => japanese(code),
        Language::Hindi => hindi(code),
        Language::Neutral => None,
    }
}

fn english(code: &str) -> Option<Names> {
    Some(match code {
        "EUR" => ["euro", "euros", "cent", "cents"],
        "USD" => ["dollar", "dollars", "cent", "cents"],
        "CAD" => ["Canadian dollar", "Canadian dollars", "cent", "cents"],
        "AUD" => ["Australian dollar", "Australian dollars", "cent", "cents"],
        "GBP" => ["pound", "pounds", "penny", "pence"],
        "CHF" => ["Swiss franc", "Swiss francs", "centime", "centimes"],
        "INR" => ["rupee", "rupees", "paisa", "paise"],
        "BRL" => ["real", "reais", "centavo", "centavos"],
        "MXN" => ["peso", "pesos", "centavo", "centavos"],
        "JPY" => ["yen", "yen", "", ""],
        _ => return None,
    })
}

fn german(code: &str) -> Option<Names> {
    Some(match code {
        "EUR" => ["Euro", "Euro", "Cent", "Cent"],
        "USD" => ["Dollar", "Dollar", "Cent", "Cent"],
        "GBP" => ["Pfund", "Pfund", "Penny", "Pence"],
        "CHF" => ["Schweizer Franken", "Schweizer Franken", "Rappen", "Rappen"],
        "INR" => ["Rupie", "Rupien", "Paisa", "Paise"],
        "JPY" => ["Yen", "Yen", "", ""],
        _ => return None,
    })
}

fn spanish(code: &str) -> Option<Names> {
    Some(match code {
        "EUR" => ["euro", "euros", "céntimo", "céntimos"],
        "USD" => ["dólar", "dólares", "centavo", "centavos"],
        "GBP" => ["libra", "libras", "penique", "peniques"],
        "MXN" => ["peso", "pesos", "centavo", "centavos"],
        "JPY" => ["yen", "yenes", "", ""],
        _ => return None,
    })
}

fn french(code: &str) -> Option<Names> {
    Some(match code {
        "EUR" => ["euro", "euros", "centime", "centimes"],
        "USD" => ["dollar", "dollars", "cent", "cents"],
        "CHF" => ["franc suisse", "francs suisses", "centime", "centimes"],
        "GBP" => ["livre", "livres", "penny", "pence"],
        "JPY" => ["yen", "yens", "", ""],
        _ => return None,
    })
}

fn portuguese(code: &str) -> Option<Names> {
    Some(match code {
        "EUR" => ["euro", "euros", "cêntimo", "cêntimos"],
        "BRL" => ["real", "reais", "centavo", "centavos"],
        "USD" => ["dólar", "dólares", "centavo", "centavos"],
        "JPY" => ["iene", "ienes", "", ""],
        _ => return None,
    })
}

fn japanese(code: &str) -> Option<Names> {
    Some(match code {
        "JPY" => ["円", "円", "", ""],
        "EUR" => ["ユーロ", "ユーロ", "セント", "セント"],
        "USD" => ["ドル", "ドル", "セント", "セント"],
        _ => return None,
    })
}

fn hindi(code: &str) -> Option<Names> {
    Some(match code {
        "INR" => ["रुपया", "रुपये", "पैसा", "पैसे"],
        "EUR" => ["यूरो", "यूरो", "सेंट", "सेंट"],
        "USD" => ["डॉलर", "डॉलर", "सेंट", "सेंट"],
        _ => return None,
    })
}

//! The document at `/v1/openapi.json` against the router's own list.

use std::collections::{BTreeMap, BTreeSet};

use sayback_server::Role;
use sayback_server::routes::{self, Needs};
use serde_json::Value;

use crate::support::{board, start, token};

/// What the document says that an operation takes.
fn needs(operation: &Value) -> BTreeSet<String> {
    let open = operation["security"].as_array().is_some_and(Vec::is_empty);
    let roles = operation["x-roles"].as_array().into_iter().flatten();
    let roles: BTreeSet<String> = roles.map(|role| role.as_str().unwrap().to_owned()).collect();
    assert_eq!(open, roles.is_empty(), "{operation}");
    roles
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_tells_every_route_and_no_other_with_its_roles() {
    let server = start(&board(), vec![token("reader", &[Role::Read])]).await;
    let answer = server.ask("GET", "/v1/openapi.json").send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    let document: Value = answer.json().await.unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let mut told = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            told.insert((path.clone(), method.to_uppercase()), needs(operation));
            let names: Vec<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let in_path: Vec<&str> = path.split('/').filter_map(|part| part.strip_prefix('{')).collect();
            assert_eq!(names.len(), in_path.len(), "{method} {path}");
        }
    }
    let all = |roles: &[Role]| roles.iter().map(|role| role.name().to_owned()).collect();
    let routed: BTreeMap<(String, String), BTreeSet<String>> = routes::all()
        .into_iter()
        .map(|route| {
            let needs = match route.needs {
                Needs::Nothing | Needs::Proof => BTreeSet::new(),
                Needs::Token => all(&Role::ALL),
                Needs::OneOf(roles) => all(roles),
            };
            ((route.path.to_owned(), route.method.to_owned()), needs)
        })
        .collect();
    assert_eq!(told, routed);
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let document: Value = serde_json::from_str(routes::DOCUMENT).unwrap();
    let mut parts = routes::DOCUMENT.split("\"$ref\": \"#").skip(1).peekable();
    assert!(parts.peek().is_some());
    for part in parts {
        let pointer = part.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

//! Every rule of the gate has a test, and `docs/conformance.md` says which.

use sayback_house::{ids_in, page, read, root, rows, test_functions, tests_by_id};

#[test]
fn every_rule_has_a_test_that_carries_its_id() {
    let (rows, tests) = (rows(), tests_by_id());
    assert_eq!(rows.len(), 85, "tests/house/rows.txt has lost a row");
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row.id, format!("VC-{:02}", at + 1), "the rows are in order");
    }
    let bare: Vec<&str> =
        rows.iter().filter(|row| !tests.contains_key(&row.id)).map(|row| row.id.as_str()).collect();
    assert!(bare.is_empty(), "no test carries the id of {bare:?}");
    let unknown: Vec<&String> = tests.keys().filter(|id| !rows.iter().any(|row| row.id == **id)).collect();
    assert!(unknown.is_empty(), "no such rule: {unknown:?} in {:?}", unknown.first().map(|id| &tests[*id]));
}

#[test]
fn the_page_is_that_of_the_sources() {
    let path = root().join("docs/conformance.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let stale =
        "docs/conformance.md is stale; make it with: UPDATE=1 cargo test -p sayback-house --test conformance";
    let now = page();
    let differs = now.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(now == written, "{stale}\n  first difference: {differs:?}");
    assert!(read(&path).lines().count() > 85);
}

#[test]
fn ids_are_found_in_names_comments_and_texts() {
    assert_eq!(ids_in("fn vc_29_words() { // VC-30\n \"VC-31, VC-320, XVC-33\" }").len(), 3);
    let source = "/// VC-07\n#[test]\nfn a() {\n    if b {\n    }\n}\n\nfn other() {\n    // VC-08\n}\n\nmod t {\n    // VC-09\n    #[tokio::test]\n    async fn c() {\n    }\n}\n";
    let found: Vec<(String, Vec<String>)> =
        test_functions(source).into_iter().map(|(n, t)| (n, ids_in(&t).into_iter().collect())).collect();
    let expected = [("a".to_owned(), vec!["VC-07".to_owned()]), ("c".to_owned(), vec!["VC-09".to_owned()])];
    assert_eq!(found, expected);
}

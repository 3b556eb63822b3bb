//! Every rule has a test that carries its id, and pages in docs say which.

use sayback_house::{TABLES, ids_in, page, read, root, test_functions, tests_by_id};

#[test]
fn every_rule_has_a_test_that_carries_its_id() {
    let tests = tests_by_id();
    for table in TABLES {
        let rows = table.rows();
        assert_eq!(rows.len(), table.rows, "tests/house/{} has lost a row", table.source);
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row.id, format!("{}-{:02}", table.prefix, at + 1), "the rows are in order");
        }
        let bare: Vec<&str> =
            rows.iter().filter(|row| !tests.contains_key(&row.id)).map(|row| row.id.as_str()).collect();
        assert!(bare.is_empty(), "no test carries the id of {bare:?}");
        let own = tests.keys().filter(|id| id.starts_with(&format!("{}-", table.prefix)));
        let unknown: Vec<&String> = own.filter(|id| !rows.iter().any(|row| row.id == **id)).collect();
        assert!(
            unknown.is_empty(),
            "no such rule: {unknown:?} in {:?}",
            unknown.first().map(|id| &tests[*id])
        );
    }
}

#[test]
fn the_pages_are_those_of_the_sources() {
    for table in TABLES {
        let path = root().join("docs").join(table.page);
        let now = page(table);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &now).expect("the page can be written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        let stale = format!(
            "docs/{} is stale; make it with: UPDATE=1 cargo test -p sayback-house --test conformance",
            table.page
        );
        let differs = now.lines().zip(written.lines()).find(|(now, then)| now != then);
        assert!(now == written, "{stale}\n  first difference: {differs:?}");
        assert!(read(&path).lines().count() > table.rows);
    }
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

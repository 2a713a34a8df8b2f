//! Embeds the migrations and SQL objects: generates their `include_str!` list for
//! `src/store/migrate/files.rs`.

use std::{env, fmt::Write as _, fs, io, path::Path};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let root = Path::new(&root);
    let mut code = String::new();
    list(&mut code, root, "MIGRATIONS", "The migrations, by version.", &["migrations"])?;
    list(
        &mut code,
        root,
        "OBJECTS",
        "Functions and views, in the order of their files.",
        &["sql/functions", "sql/views"],
    )?;
    list(
        &mut code,
        root,
        "OVERRIDES",
        "Functions that differ on the servers of a cluster.",
        &["sql/cluster/coordinator", "sql/cluster/every_server", "sql/cluster/worker"],
    )?;
    fs::write(Path::new(&out).join("embedded.rs"), code)
}

/// Appends a constant with (path in the repository, content) of each `.sql` file directly in
/// `folders`.
fn list(code: &mut String, root: &Path, constant: &str, doc: &str, folders: &[&str]) -> io::Result<()> {
    let mut text = format!("/// {doc}\npub(crate) const {constant}: &[(&str, &str)] = &[\n");
    for folder in folders {
        println!("cargo:rerun-if-changed={folder}");
        let mut names = Vec::new();
        for entry in fs::read_dir(root.join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            // Skip temporary files of editors (`.#name.sql`, `.name.sql.swp`).
            if Path::new(&name).extension().is_some_and(|extension| extension == "sql") && !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let path = format!("{folder}/{name}");
            let file = root.join(&path).to_string_lossy().into_owned();
            writeln!(text, "    ({path:?}, include_str!({file:?})),").map_err(io::Error::other)?;
        }
    }
    text.push_str("];\n");
    code.push_str(&text);
    Ok(())
}

//! `centile template`: rules of boards that their first score creates.

use clap::{Args, Subcommand};

use crate::{
    Result, boards,
    cli::{
        board::RuleFlags,
        by::By,
        output::{self, table, thousands},
        with_instance,
    },
    config::Config,
    http::api::template::TemplateResponse,
    model::{
        name::Named as _,
        template::{Template, TemplateSettings},
    },
};

/// Subcommands of `centile template`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a template, or change one
    ///
    /// A board whose name matches the pattern is created by its first score. A rule without a flag stays
    /// as it is. A change applies to all boards of the template.
    Set(Box<Set>),
    /// Delete a template without boards
    Delete {
        /// Name of the template
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        by: By,
    },
    /// List the templates
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a template as JSON
    Show {
        /// Name of the template
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Set {
    /// Name: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter
    #[arg(value_name = "NAME")]
    name: String,
    /// The beginning of the names of its boards, and `*`, such as "level-*"; cannot change
    #[arg(long)]
    pattern: String,
    /// Maximum number of boards, 1 to 100000000 [new template: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=100_000_000))]
    max_boards: Option<i32>,
    #[command(flatten)]
    rules: RuleFlags,
    #[command(flatten)]
    by: By,
}

pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Set(set) => {
            let Set { name, pattern, max_boards, rules, by } = *set;
            let (by, settings) = (by.actor()?, TemplateSettings { pattern, max_boards, rules: rules.settings()? });
            let template = with_instance(config, async |instance| {
                boards::set_template(&instance.store.admin, &instance.boards, &name, &settings, &by).await
            })
            .await?;
            output::print(format!("template {} stored for boards {}", template.name, template.pattern))
        }
        Command::Delete { name, by } => {
            let by = by.actor()?;
            with_instance(config, async |instance| boards::delete_template(&instance.store.admin, &name, &by).await)
                .await?;
            output::print(format!("template {name} deleted"))
        }
        Command::List { json } => {
            let templates = with_instance(config, async |instance| instance.store.reader.templates(None).await).await?;
            if json {
                let responses: Vec<_> = templates.iter().map(TemplateResponse::from).collect();
                return output::print_json(&responses);
            }
            output::print(table(
                ["NAME", "PATTERN", "BOARDS", "MAX BOARDS", "MODE", "ORDER", "PERIODS"],
                templates.iter().map(row).collect(),
            ))
        }
        Command::Show { name } => {
            let template =
                with_instance(config, async |instance| boards::template(&instance.store.reader, &name).await).await?;
            output::print_json(&TemplateResponse::from(&template))
        }
    }
}

fn row(template: &Template) -> [String; 7] {
    let Template { name, pattern, boards, max_boards, board } = template;
    [
        name.clone(),
        pattern.clone(),
        thousands(boards),
        thousands(max_boards),
        board.mode.name().to_owned(),
        board.order.name().to_owned(),
        output::list(&board.periods.iter().map(|kind| kind.name()).collect::<Vec<_>>(), ""),
    ]
}

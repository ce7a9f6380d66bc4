//! Renders tables: those with data as Markdown tables, those for layout as the blocks in their cells.

use super::elements::is_line_number;
use super::render::Renderer;
use super::tag::Tag;
use super::tree::{NodeId, Tree};
use super::writer::Markup;

/// Maximum number of columns of a Markdown table.
const MAX_COLUMNS: usize = 200;
/// Maximum number of cells that one cell may span.
const MAX_SPAN: usize = 50;

#[derive(Default)]
struct TableParts {
    caption: Option<NodeId>,
    rows: Vec<Vec<NodeId>>,
    /// Nodes that are neither rows nor cells. Browsers show them before the table.
    stray: Vec<NodeId>,
}

pub(super) fn render_table(renderer: &mut Renderer<'_>, node: NodeId) {
    let parts = table_parts(renderer.tree, node);
    renderer.writer.break_lines(2);
    for stray in &parts.stray {
        match renderer.tree.tag(*stray) {
            Some(_) => renderer.render_children(*stray),
            None => renderer.writer.text(&renderer.tree.text(*stray).unwrap_or_default()),
        }
    }
    if let Some(caption) = parts.caption {
        renderer.render_block(caption, 2);
    }
    renderer.writer.break_lines(2);
    if is_layout(renderer.tree, node, &parts) {
        for cell in parts.rows.iter().flatten() {
            if !is_line_number(renderer.tree, *cell) {
                renderer.render_block(*cell, 2);
            }
        }
        return;
    }
    render_data_table(renderer, &parts);
    renderer.writer.break_lines(2);
}

fn table_parts(tree: &Tree<'_>, node: NodeId) -> TableParts {
    let mut parts = TableParts::default();
    tree.walk(node, |id| {
        match tree.tag(id) {
            Some(Tag::Caption) => {
                parts.caption.get_or_insert(id);
                false
            }
            Some(Tag::Tr) if !tree.is_hidden(id) => {
                parts.rows.push(Vec::new());
                true
            }
            Some(Tag::Td | Tag::Th) => {
                // A cell without a row starts one.
                if parts.rows.is_empty() {
                    parts.rows.push(Vec::new());
                }
                let is_shown = !tree.is_hidden(id);
                if let (Some(row), true) = (parts.rows.last_mut(), is_shown) {
                    row.push(id);
                }
                false
            }
            Some(Tag::Colgroup | Tag::Col | Tag::Script | Tag::Style | Tag::Template) => false,
            Some(_) if tree.is_hidden(id) => false,
            Some(Tag::Thead | Tag::Tbody | Tag::Tfoot | Tag::Form | Tag::Tr) => true,
            Some(_) => {
                parts.stray.push(id);
                false
            }
            None => {
                if tree.text(id).is_some_and(|text| !text.trim().is_empty()) {
                    parts.stray.push(id);
                }
                false
            }
        }
    });
    parts.rows.retain(|row| !row.is_empty());
    parts
}

/// Whether a table only arranges blocks.
fn is_layout(tree: &Tree<'_>, node: NodeId, parts: &TableParts) -> bool {
    let role = tree.attribute(node, "role");
    if role.is_some_and(|role| matches!(&*role, "presentation" | "none")) {
        return true;
    }
    let has_blocks = |cell: &NodeId| {
        tree.contains(*cell, |tag| {
            matches!(tag, Tag::Table | Tag::Pre | Tag::Xmp | Tag::Blockquote | Tag::Hr)
                || tag.heading_level().is_some()
        })
    };
    let columns = parts.rows.iter().map(Vec::len).max().unwrap_or(0);
    columns <= 1 || columns > MAX_COLUMNS || parts.rows.iter().flatten().any(has_blocks)
}

fn render_data_table(renderer: &mut Renderer<'_>, parts: &TableParts) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in &parts.rows {
        let mut cells = Vec::new();
        for cell in row {
            cells.push(escape_cell(renderer.render_to_line(*cell)));
            let span =
                renderer.tree.attribute(*cell, "colspan").and_then(|it| it.trim().parse().ok());
            for _ in 1..span.unwrap_or(1).clamp(1, MAX_SPAN) {
                cells.push(String::new());
            }
        }
        cells.truncate(MAX_COLUMNS);
        rows.push(cells);
    }
    rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for (at, row) in rows.iter_mut().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        row.resize(columns, String::new());
        match renderer.writer.markup() {
            Markup::Markdown => {
                text.push('|');
                for cell in row.iter() {
                    text.push(' ');
                    text.push_str(cell);
                    text.push_str(" |");
                }
                if at == 0 {
                    text.push_str("\n|");
                    text.push_str(&" --- |".repeat(columns));
                }
            }
            Markup::Plain => text.push_str(row.join(" | ").trim_end()),
        }
    }
    if !text.is_empty() {
        renderer.writer.lines(&text);
    }
}

/// Escapes what would end a cell.
fn escape_cell(text: String) -> String {
    match text.contains(['|', '\n']) {
        true => text.replace('|', "\\|").replace('\n', " "),
        false => text,
    }
}

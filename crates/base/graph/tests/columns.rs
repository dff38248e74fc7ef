//! The columns that nodes declare: contradictions that the engine refuses, and columns that share storage.

use volley_graph::buf::Pool;
use volley_graph::*;

nexts! { enum Next { Drop => "error-drop" } }

/// Sends all packets to the drop node.
struct Sink;

impl Node for Sink {
    const NAME: &'static str = "sink";
    type Next = Next;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, Next>) -> Consumed {
        v.send_all(Next::Drop)
    }
}

const LAYER_A: Life = Life::Layer("a");
const LAYER_B: Life = Life::Layer("b");

fn engine() -> Engine {
    let settings = Settings {
        buffers: 64,
        ..Settings::default()
    };
    Engine::new(settings, Pool::new(64).unwrap(), Domain::new()).unwrap()
}

fn value(name: &'static str, storage: usize, life: Life) -> ColumnInfo {
    ColumnInfo::new(name, ColumnKind::Value, storage, life)
}

fn add(engine: &mut Engine, node: &str, columns: &[ColumnInfo]) -> Result<(), String> {
    let added = engine.add_with_columns(node, columns, |_| Sink);
    added.map(drop).map_err(|error| error.to_string())
}

#[test]
fn columns_share_storage_where_their_lives_do_not_overlap() {
    let mut engine = engine();
    let first = [value("a0", 0, LAYER_A), value("h0", 5, Life::Hop)];
    assert_eq!(add(&mut engine, "one", &first), Ok(()));
    // The same columns, a column of another layer, another column of one hop.
    let second = [
        value("a0", 0, LAYER_A),
        value("a1", 1, LAYER_A),
        value("h1", 5, Life::Hop),
    ];
    assert_eq!(add(&mut engine, "two", &second), Ok(()));
    let other = [value("b0", 0, LAYER_B)];
    assert_eq!(add(&mut engine, "three", &other), Ok(()));
}

#[test]
fn contradictions_are_refused_in_one_sentence_that_names_both_sides() {
    let mut engine = engine();
    add(&mut engine, "one", &[value("a0", 0, LAYER_A)]).unwrap();
    let refused = [
        // The same layer, a hop in a layer's storage, the same name elsewhere.
        (
            value("other", 0, LAYER_A),
            "column `other` of `two` contradicts column `a0` of `one`",
        ),
        (
            value("hop", 0, Life::Hop),
            "column `hop` of `two` contradicts column `a0` of `one`",
        ),
        (
            value("a0", 1, LAYER_A),
            "column `a0` of `two` contradicts column `a0` of `one`",
        ),
    ];
    for (column, want) in refused {
        let error = add(&mut engine, "two", &[column]).unwrap_err();
        assert!(error.starts_with(want), "{error}");
    }
    // A node cannot distinguish two columns in one storage, whatever their lives.
    let both = [value("b0", 3, LAYER_B), value("a3", 3, LAYER_A)];
    let error = add(&mut engine, "two", &both).unwrap_err();
    let want = "column `a3` of `two` contradicts column `b0` of `two`";
    assert!(error.starts_with(want), "{error}");
    // A refused node is not in the graph, and a removed node's columns are free again.
    add(&mut engine, "two", &[]).unwrap();
    engine.remove("one").unwrap();
    assert_eq!(
        add(&mut engine, "three", &[value("other", 0, LAYER_A)]),
        Ok(())
    );
}

#[test]
fn columns_of_run_time_take_what_is_free_until_nothing_is() {
    let mut engine = engine();
    let fixed = [value("a0", 0, LAYER_A), value("a1", 1, LAYER_A)];
    add(&mut engine, "one", &fixed).unwrap();
    let mut columns = Vec::new();
    let names = ["p0", "p1", "p2", "p3", "p4", "p5", "p6"];
    for name in names {
        let column = engine.register_column("plugin", name, ColumnKind::Value, LAYER_A);
        columns.push(column.unwrap());
    }
    // All columns differ, none uses the storage of the constants, and a second request returns the first one's column.
    assert_eq!(add(&mut engine, "plugin-node", &columns), Ok(()));
    let again = engine.register_column("plugin", "p3", ColumnKind::Value, LAYER_A);
    assert_eq!(again, Ok(columns[3]));
    let error = engine.register_column("plugin", "p7", ColumnKind::Value, LAYER_A);
    assert_eq!(
        error.unwrap_err().to_string(),
        "column `p7` has no storage left: column `a0` of `one` has the last one, and their lives overlap"
    );
    // A column of another layer may use all storage.
    let other = engine.register_column("plugin", "q", ColumnKind::Value, LAYER_B);
    assert!(
        columns
            .iter()
            .any(|column| Ok(column.col) == other.as_ref().map(|it| it.col))
    );
    // Only one mark exists.
    let mark = engine.register_column("plugin", "m0", ColumnKind::Mark, LAYER_A);
    assert!(mark.is_ok());
    let error = engine.register_column("plugin", "m1", ColumnKind::Mark, LAYER_A);
    let want = "column `m1` has no storage left: column `m0` of `plugin` has the last one";
    assert!(error.unwrap_err().to_string().starts_with(want));
}

/// Writes a column that it has not declared.
struct Undeclared(Col);

impl Node for Undeclared {
    const NAME: &'static str = "undeclared";
    type Next = Next;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.column_mut(self.0).fill(7);
        v.send_all(Next::Drop)
    }
}

#[cfg(debug_assertions)]
#[test]
#[should_panic(expected = "which is not in its COLUMNS")]
fn a_debug_build_refuses_a_column_that_the_node_does_not_list() {
    let col = value("a0", 0, LAYER_A).col;
    let packets = [harness::In::new(&[0; 64])];
    let _ = harness::run_once(Level::Scalar, 4, &packets, &Domain::new(), move |_| {
        Undeclared(col)
    });
}

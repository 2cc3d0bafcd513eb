//go:build controlplane && databases

package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/postgres"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// hostile are values that mean something in SQL, YAML, templates, CEL, JSON, paths, terminals or format strings.
var hostile = []string{
	`'; DROP TABLE hostile; --`, `$1 $id $message $$`, `\'; UPDATE hostile SET state = 'owned'; /*`, `" OR 1=1 --`,
	"x\n  evil: yes\n- &a *b !!binary\n---\nkind: Secret", "{a: b, <<: *c}", "# comment", "@`%|>", "~", "null", "0x1F", "1e3", "on", "[]", "{}",
	`{{ .row.id }}`, `{{ range $i := until 1000000000 }}{{ end }}`, "}}{{", `' + self.row.id + '`, `") || true || ("`,
	`..\/../etc/passwd`, "\x1b[31m\x01\r\t\b", "\u202e\u2028\ufeff\ufffe \ue000\ue001", "%s %d %n %!s(<nil>)", "é \U0001F600", strings.Repeat("a", 300000),
}

// hostileRow is a row with one hostile column.
type hostileRow struct {
	id, name, note, label string
	doc                   any
	tags                  []string
	state                 string
}

// hostileRows are rows with each value in each column.
func hostileRows() (rows []hostileRow) {
	add := func(change func(r *hostileRow)) {
		i := len(rows)
		r := hostileRow{id: fmt.Sprintf("id-%d", i), name: fmt.Sprintf("row-%d", i), note: "note", label: "good", doc: "doc", tags: []string{"tag"},
			state: "Ready"}
		change(&r)
		rows = append(rows, r)
	}
	for _, v := range hostile {
		add(func(r *hostileRow) { r.id = v })
		add(func(r *hostileRow) { r.note = v })
		add(func(r *hostileRow) { r.tags = []string{v, v} })
		add(func(r *hostileRow) { r.doc = map[string]any{"key": v, v: []any{v}} })
		add(func(r *hostileRow) { r.note, r.label, r.state = v, "refuse", "Failed" }) // which is in the message
		if !slices.Contains([]string{"null", "1e3", "on", "0x1F"}, v) {               // those are names
			add(func(r *hostileRow) { r.label, r.state = v, "Failed" })
			add(func(r *hostileRow) { r.name, r.state = v, "Failed" })
		}
	}
	add(func(r *hostileRow) { r.doc = "NUL \x00 in JSON" })
	add(func(r *hostileRow) { r.note, r.state = strings.Repeat("b", 1_000_000), "Progressing" }) // the API server refuses it
	add(func(r *hostileRow) { r.name, r.state = strings.Repeat("c", 1_000_000), "Failed" })
	add(func(r *hostileRow) { r.label, r.state = strings.Repeat("d", 1_000_000), "Failed" })
	return rows
}

const hostileConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
source:
  postgres: {dsnFrom: {file: DSN}}
  query: SELECT id, name, note, label, doc, tags FROM hostile
  key: id
  changes: {listen: hostile, poll: 1h}
  writeBack: UPDATE hostile SET state = $state, message = $message, ready = $ready WHERE id = $id
validate:
  - {rule: "self.row.label != 'refuse'", messageExpression: "'refused: ' + self.row.note"}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: {{ .row.name }}
        namespace: NS
        labels: {label: {{ .row.label }}}
        annotations: {example.com/tag: '{{ index .row.tags 0 | trunc 1000 }}'}
      data:
        id: {{ .row.id }}
        note: {{ .row.note }}
        quoted: "<{{ .row.note }}>"
        block: |
          - {{ .row.note }} # no comment
        doc: '{{ .row.doc | toJson }}'
        tags: '{{ range .row.tags }}[{{ . }}]{{ end }}'
        {{ .row.name }}: name
    targetNamespaces: {from: List, names: [NS]}
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {annotation: NAME.example.com/hash}
  owner: {annotation: NAME.example.com/owner}
retry: {minDelay: 1s, maxDelay: 10s}
`

// A hostile value in any column stays a value: in each position of the document, in messages, and in what is written
// back.
func TestPostgresHostileValues(t *testing.T) {
	t.Parallel()
	ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
	server.Exec(`CREATE TABLE hostile (id text, name text, note text, label text, doc json, tags text[], state text, message text, ready text)`,
		"CREATE TABLE executed (statement text)",
		`CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO executed VALUES (current_query()); RETURN NULL; END $$`,
		"CREATE TRIGGER recorded AFTER UPDATE ON hostile FOR EACH STATEMENT EXECUTE FUNCTION record()")
	rows := hostileRows()
	insertHostile(t, server, rows)
	file, _ := dsnFile(t, server.DSN())
	start(t, testkit.Config(t), strings.Replace(fill(hostileConfig, ns, name), "DSN", file, 1)).ready()
	waitText(t, fmt.Sprint(len(rows)), func() string { return server.Exec("SELECT count(*) FROM hostile WHERE state IS NOT NULL") })
	conn := must.Get(pgx.Connect(t.Context(), server.DSN())).In(t)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	want := map[string]bool{}
	for _, r := range rows {
		var state, message, note string
		if err := conn.QueryRow(t.Context(), "SELECT state, message, note FROM hostile WHERE id = $1", r.id).Scan(&state, &message, &note); err != nil {
			t.Fatalf("%.50q: %v", r.id, err)
		}
		switch {
		case state != r.state:
			t.Errorf("%.80q: %s, %.300s", fmt.Sprint(r), state, message)
		case note != r.note:
			t.Errorf("%.50q became %.50q", r.note, note)
		case r.label == "refuse" && message != "Invalid value: refused: "+r.note &&
			message != "Invalid value: failed rule: self.row.label != 'refuse'": // of a text that is not one line
			t.Errorf("%.50q is refused with %.300q", r.note, message)
		}
		if r.state == "Ready" {
			want[r.name] = true
			checkHostile(t, ns, name, r)
		}
	}
	for _, cm := range testkit.List(t, configMaps, ns, selector(name)) {
		if !want[cm.GetName()] {
			t.Errorf("there is a ConfigMap %s", cm.GetName())
		}
	}
	const statement = "UPDATE hostile SET state = $1, message = $2, ready = $3 WHERE id = $4"
	must.Same(t, statement, server.Exec("SELECT DISTINCT statement FROM executed"), "executed")
}

func insertHostile(t *testing.T, server *postgres.Server, rows []hostileRow) {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), server.DSN())).In(t)
	defer func() { _ = conn.Close(t.Context()) }()
	for _, r := range rows {
		doc := must.Get(json.Marshal(r.doc)).In(t)
		if _, err := conn.Exec(t.Context(), "INSERT INTO hostile VALUES ($1, $2, $3, $4, $5, $6)", r.id, r.name, r.note, r.label, doc, r.tags); err != nil {
			t.Fatal(err)
		}
	}
}

// checkHostile fails if anything in a row's ConfigMap is not what the row says.
func checkHostile(t *testing.T, ns, name string, r hostileRow) {
	t.Helper()
	cm := testkit.Get(t, configMaps, ns, r.name)
	doc := must.Get(json.Marshal(r.doc)).In(t)
	var have, made any
	data, _, err := unstructured.NestedStringMap(cm.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(data["doc"]), &have); err != nil {
		t.Errorf("doc is %.300s: %v", data["doc"], err)
	}
	_ = json.Unmarshal(doc, &made) // which json has made
	data["doc"] = "the same"
	want := map[string]string{"id": r.id, "note": r.note, "quoted": "<" + r.note + ">", "block": "- " + r.note + " # no comment\n",
		"tags": "[" + strings.Join(r.tags, "][") + "]", r.name: "name", "doc": "the same"}
	tag := r.tags[0]
	if len(tag) > 1000 {
		tag = tag[:1000]
	}
	must.Same(t, want, data)
	must.Same(t, made, have)
	must.Same(t, map[string]string{"label": "good", name + ".example.com/managed": "yes"}, cm.GetLabels())
	keys := slices.Sorted(maps.Keys(cm.GetAnnotations()))
	all := []string{name + ".example.com/hash", name + ".example.com/owner", "example.com/tag"}
	slices.Sort(all)
	if !slices.Equal(keys, all) || cm.GetAnnotations()["example.com/tag"] != tag {
		t.Errorf("the annotations are %.500v", cm.GetAnnotations())
	}
}

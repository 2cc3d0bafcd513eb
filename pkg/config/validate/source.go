package validate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/sqltext"
)

// maxSourceRows bounds maxRows: all rows are in memory.
const maxSourceRows = 1_000_000

// checkSource checks where rows come from, and that nothing is asked of them that only objects of an API server have.
func checkSource(v *validator) {
	s := v.Source
	checkRows(v, "source", &s.Rows, "write a SELECT whose rows are the upstreams")
	checkWriteBack(v)
	checkBounded(v, "source.deletes.maxPercent", s.Deletes.MaxPercent, 0, 100)
	if n := *s.Deletes.Minimum; n < 0 {
		v.Add("source.deletes.minimum", "write 0 or more", "%d is negative", n)
	}
	for _, of := range []struct{ key, why string }{
		{"watch", "the upstreams are its rows"},
		{"status", "a row has no status: corollary get and why show its state"},
		{"conversion", "a row has no versions"},
		{"deletion.wait", "a row that is gone cannot be held"},
		{"deletion.before", "a row that is gone cannot be held"},
		{"guard.maxDeleted", "source.deletes limits what a result may delete"},
	} {
		if v.Given(strings.Split(of.key, ".")...) && (of.key != "status" || !statusIsOff(v)) {
			v.Add(of.key, "remove it", "it is not supported with source: %s", of.why)
		}
	}
}

// statusIsOff reports whether status says no more than that there is none.
func statusIsOff(v *validator) bool {
	s := &v.Status
	return !*s.Enabled && s.Conditions == (config.Conditions{}) && s.Downstreams == "" && len(s.Fields) == 0
}

// checkRows checks a query, which is at a path.
func checkRows(v *validator, at string, r *query.Rows, fix string) {
	checkDatabase(v, at, r)
	if v.required(at+".query", r.Query, fix) {
		if _, err := sqltext.Query(r.Query); err != nil {
			v.Add(at+".query", "write one statement without parameters, such as SELECT id, name FROM apps", "%v", err)
		}
	}
	v.required(at+".key", r.Key, "name the column that identifies a row")
	const second = common.Duration(time.Second)
	if r.Changes.Poll < second {
		v.Add(at+".changes.poll", "write at least 1s", "%s is too short", r.Changes.Poll)
	}
	c := r.Changes
	switch {
	case c.Cursor == "" && c.Overlap != 0:
		v.Add(at+".changes.overlap", "remove it, or add cursor", "it is about a cursor, and there is none")
	case c.Cursor == "" && c.Full != 0:
		v.Add(at+".changes.full", "remove it, or add cursor", "it is about a cursor, and there is none")
	case c.Cursor != "" && c.Overlap < second:
		v.Add(at+".changes.overlap", "write at least 1s", "%s is too short", c.Overlap)
	case c.Cursor != "" && c.Full < c.Overlap:
		v.Add(at+".changes.full", "write at least as much as overlap", "%s is shorter than overlap, %s", c.Full, c.Overlap)
	}
	if r.Timeout < second {
		v.Add(at+".timeout", "write at least 1s", "%s is too short", r.Timeout)
	}
	checkBounded(v, at+".maxRows", r.MaxRows, 1, maxSourceRows)
}

// checkWriteBack checks the statement that records states.
func checkWriteBack(v *validator) {
	const at, dsn = "source.writeBack", "source.writeDSNFrom"
	s := v.Source
	if s.WriteBack == "" {
		if s.WriteDSNFrom != nil {
			v.Add(dsn, "remove it, or add source.writeBack", "nothing is written")
		}
		return
	}
	switch {
	case s.WriteDSNFrom != nil && s.Postgres == nil && s.MySQL == nil && s.SQLite != nil:
		v.Add(dsn, "remove it", "SQLite has no connection strings")
	case s.WriteDSNFrom != nil:
		checkDsn(v, dsn, *s.WriteDSNFrom)
	}
	known := append(slices.Clone(query.RowParameters), s.Key)
	statement, err := sqltext.Parse(s.WriteBack)
	if err != nil {
		v.Add(at, "write one UPDATE or INSERT with parameters such as $"+query.RowState, "%v", err)
		return
	}
	if verb := statement.Verb(); verb != "UPDATE" && verb != "INSERT" {
		v.Add(at, "write an UPDATE or INSERT", "the statement begins with %q", verb)
	}
	if slices.Contains(query.RowParameters, s.Key) {
		v.Add("source.key", "name it otherwise in source.query, with AS",
			"$%s is already a parameter of source.writeBack", s.Key)
		return
	}
	for _, name := range statement.Names() {
		if !slices.Contains(known, name) {
			fix, _ := document.Suggest(name, known, "known here are")
			v.Add(at, fix, "unknown parameter $%s", name)
		}
	}
	if !slices.Contains(statement.Names(), s.Key) && s.Key != "" {
		v.Add(at, "write the row that is meant, such as WHERE "+s.Key+" = $"+s.Key, "it does not use $%s", s.Key)
	}
}

// checkDatabase wants exactly one database.
func checkDatabase(v *validator, at string, r *query.Rows) {
	var given []string
	for _, db := range []struct {
		key   string
		given bool
	}{{"postgres", r.Postgres != nil}, {"mysql", r.MySQL != nil}, {"sqlite", r.SQLite != nil}} {
		if db.given {
			given = append(given, db.key)
		}
	}
	switch {
	case len(given) > 1:
		last := len(given) - 1
		v.Add(at+"."+given[last], "keep one of them", "both %s and %s are given",
			strings.Join(given[:last], ", "), given[last])
		return
	case r.SQLite != nil:
		v.required(at+".sqlite.path", r.SQLite.Path, "name the file of the database")
	case len(given) == 1:
		server, key := r.Server()
		checkDsn(v, at+"."+key+".dsnFrom", server.DSNFrom)
	case !v.Reported(at+".postgres") && !v.Reported(at+".mysql") && !v.Reported(at+".sqlite"):
		v.Add(at, "add postgres: {dsnFrom: {env: NAME}}, mysql: {dsnFrom: {env: NAME}} or sqlite: {path: FILE}",
			"no database is given")
	}
	if r.Changes.Listen != "" && len(given) == 1 && r.Postgres == nil {
		v.Add(at+".changes.listen", "remove it", "only PostgreSQL has notifications")
	}
}

// checkDsn wants exactly one place of a connection string.
func checkDsn(v *validator, at string, from query.DSNFrom) {
	given := 0
	for _, is := range []bool{from.Env != "", from.File != "", from.Secret != nil} {
		if is {
			given++
		}
	}
	switch {
	case v.Reported(at):
	case given != 1:
		v.Add(at, "write env: NAME, file: FILE, or secret: {namespace: …, name: …, key: …}",
			"found %d places of the connection string, wanted one", given)
	case from.Secret != nil:
		if v.required(at+".secret.namespace", from.Secret.Namespace, "name the namespace of the Secret") {
			v.form(forms.NamespaceName, at+".secret.namespace", from.Secret.Namespace, from.Secret.Namespace)
		}
		if v.required(at+".secret.name", from.Secret.Name, "name the Secret") {
			v.form(forms.SecretName, at+".secret.name", from.Secret.Name, from.Secret.Name)
		}
		if v.required(at+".secret.key", from.Secret.Key, "name the key in its data") {
			v.form(forms.SecretKey, at+".secret.key", from.Secret.Key, from.Secret.Key)
		}
	}
}

// checkBounded checks a number that has a default.
func checkBounded(v *validator, at string, n *int, least, most int) {
	if *n < least || *n > most {
		v.Add(at, fmt.Sprintf("write %d to %d", least, most), "%d is out of range", *n)
	}
}

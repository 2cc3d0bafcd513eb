package config

import (
	"fmt"
	"strings"
	"time"
)

// maxSourceRows bounds maxRows: all rows are in memory.
const maxSourceRows = 1_000_000

// source checks where rows come from, and that nothing is asked of them that only objects of an API server have.
func (v *validator) source() {
	s := v.Source
	v.database()
	v.required("source.query", s.Query, "write a SELECT whose rows are the upstreams")
	v.required("source.key", s.Key, "name the column that identifies a row")
	const second = Duration(time.Second)
	if s.Changes.Poll < second {
		v.add("source.changes.poll", "write at least 1s", "%s is too short", s.Changes.Poll)
	}
	if s.Timeout < second {
		v.add("source.timeout", "write at least 1s", "%s is too short", s.Timeout)
	}
	v.bounded("source.maxRows", s.MaxRows, 1, maxSourceRows)
	v.bounded("source.deletes.maxPercent", s.Deletes.MaxPercent, 0, 100)
	if n := *s.Deletes.Minimum; n < 0 {
		v.add("source.deletes.minimum", "write 0 or more", "%d is negative", n)
	}
	for _, of := range []struct{ key, why string }{
		{"watch", "the upstreams are its rows"},
		{"status", "a row has no status: corollary get and why show its state"},
		{"conversion", "a row has no versions"},
		{"deletion.wait", "a row that is gone cannot be held"},
		{"deletion.before", "a row that is gone cannot be held"},
		{"guard.maxDeleted", "source.deletes limits what a result may delete"},
	} {
		if v.given(strings.Split(of.key, ".")...) && (of.key != "status" || !v.statusIsOff()) {
			v.add(of.key, "remove it", "it is not supported with source: %s", of.why)
		}
	}
}

// statusIsOff reports whether status says no more than that there is none.
func (v *validator) statusIsOff() bool {
	s := &v.Status
	return !*s.Enabled && s.Conditions == (Conditions{}) && s.Downstreams == "" && len(s.Fields) == 0
}

// database wants exactly one database.
func (v *validator) database() {
	s := v.Source
	switch {
	case s.SQLite != nil && s.Postgres != nil:
		v.add("source.sqlite", "keep one of the two", "both postgres and sqlite are given")
	case s.SQLite != nil:
		v.required("source.sqlite.path", s.SQLite.Path, "name the file of the database")
		if s.Changes.Listen != "" {
			v.add("source.changes.listen", "remove it", "SQLite has no notifications")
		}
	case s.Postgres != nil:
		v.dsn("source.postgres.dsnFrom", s.Postgres.DSNFrom)
	case !v.reported("source.postgres") && !v.reported("source.sqlite"):
		v.add("source", "add postgres: {dsnFrom: {env: NAME}} or sqlite: {path: FILE}", "no database is given")
	}
}

// dsn wants exactly one place of a connection string.
func (v *validator) dsn(at string, from DSNFrom) {
	given := 0
	for _, is := range []bool{from.Env != "", from.File != "", from.Secret != nil} {
		if is {
			given++
		}
	}
	switch {
	case v.reported(at):
	case given != 1:
		v.add(at, "write env: NAME, file: FILE, or secret: {namespace: …, name: …, key: …}",
			"found %d places of the connection string, wanted one", given)
	case from.Secret != nil:
		if v.required(at+".secret.namespace", from.Secret.Namespace, "name the namespace of the Secret") {
			v.form(namespaceName, at+".secret.namespace", from.Secret.Namespace, from.Secret.Namespace)
		}
		if v.required(at+".secret.name", from.Secret.Name, "name the Secret") {
			v.form(secretName, at+".secret.name", from.Secret.Name, from.Secret.Name)
		}
		if v.required(at+".secret.key", from.Secret.Key, "name the key in its data") {
			v.form(secretKey, at+".secret.key", from.Secret.Key, from.Secret.Key)
		}
	}
}

var (
	secretName = syntax{"a Secret's name", configMapName.fix, configMapName.check}
	secretKey  = syntax{"a key of a Secret", configMapKey.fix, configMapKey.check}
)

// bounded checks a number that has a default.
func (v *validator) bounded(at string, n *int, least, most int) {
	if *n < least || *n > most {
		v.add(at, fmt.Sprintf("write %d to %d", least, most), "%d is out of range", *n)
	}
}

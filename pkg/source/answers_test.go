package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// secretValue is in a row, and so in no error.
const secretValue = "hunter2"

func TestPostgresAnswers(t *testing.T) {
	for _, c := range []struct {
		reason, want string
		answer       pgconn.PgError
	}{
		{"a value is quoted", "invalid input syntax for type integer: … (SQLSTATE 22P02)",
			pgconn.PgError{Code: "22P02", Message: `invalid input syntax for type integer: "hunter2"`}},
		{"with quotation marks in it", "value … is out of range for type integer (SQLSTATE 22003)",
			pgconn.PgError{Code: "22003", Message: `value "hun"ter2" is out of range for type integer`}},
		{"in another language", "ungültige Eingabesyntax für Typ integer: … (SQLSTATE 22P02)",
			pgconn.PgError{Code: "22P02", Message: `ungültige Eingabesyntax für Typ integer: »hunter2«`}},
		{"a number without quotation marks", "date field value out of range: … (SQLSTATE 22008)",
			pgconn.PgError{Code: "22008", Message: "date field value out of range: 2026-13-41"}},
		{"bytes", "invalid byte sequence for encoding …: … (SQLSTATE 22021)",
			pgconn.PgError{Code: "22021", Message: `invalid byte sequence for encoding "UTF8": 0xff`}},
		{"the statement itself", `invalid input syntax for type integer: "x" (SQLSTATE 22P02, at character 8)`,
			pgconn.PgError{Code: "22P02", Message: `invalid input syntax for type integer: "x"`, Position: 8}},
		{"a name in the statement", `relation "nothing" does not exist (SQLSTATE 42P01, at character 16)`,
			pgconn.PgError{Code: "42P01", Message: `relation "nothing" does not exist`, Position: 16}},
		{"a value that is looked up as a name", "relation … does not exist (SQLSTATE 42P01)",
			pgconn.PgError{Code: "42P01", Message: `relation "hunter2" does not exist`}},
		{"a constraint", "duplicate key value violates unique constraint … (SQLSTATE 23505, constraint apps_pkey)", pgconn.PgError{Code: "23505",
			Message: `duplicate key value violates unique constraint "apps_pkey"`, ConstraintName: "apps_pkey", Detail: "Key (id)=(hunter2) exists."}},
		{"a function's own text", notQuoted + " (SQLSTATE P0001)", pgconn.PgError{Code: "P0001", Message: "hunter2 is not allowed"}},
		{"a function's own code", notQuoted + " (SQLSTATE U0001)", pgconn.PgError{Code: "U0001", Message: "hunter2 is not allowed"}},
		{"a function with a code of the server", "a value is not valid for its type or for a function; " + notQuoted + " (SQLSTATE 22023)",
			pgconn.PgError{Code: "22023", Message: "hunter2 is not allowed", Where: "PL/pgSQL function f() line 1 at RAISE"}},
		{"a right that is missing", "permission denied for table apps2 (SQLSTATE 42501)",
			pgconn.PgError{Code: "42501", Message: "permission denied for table apps2"}},
	} {
		got := sayPostgres(&c.answer)
		if got != c.want || strings.Contains(got, secretValue) {
			t.Errorf("%s: got %s", c.reason, got)
		}
	}
}

// What SQLite quotes of a row is in no error of a query or a write.
func TestSQLiteAnswers(t *testing.T) {
	path := newDatabase(t, "CREATE TABLE t (id TEXT PRIMARY KEY, v JSON, n INTEGER CHECK (n < 5))",
		`INSERT INTO t VALUES ('hunter2', '{"a": 1, hunter2}', 1), ('b', '{"n": 1e999}', 1)`,
		"CREATE TRIGGER refuse BEFORE UPDATE OF v ON t BEGIN SELECT RAISE(ABORT, 'hunter2'); END")
	for _, c := range []struct{ reason, query, want string }{
		{"a path of a row", "SELECT json_extract('{}', id) AS id FROM t", "executing source.query: SQL logic error: bad JSON path: … (1)"},
		{"JSON that is none", "SELECT id, v FROM t", "column v of row 1 of source.query: it is not JSON: it is wrong at byte 10"},
		{"a number that is too large", "SELECT id, v FROM t WHERE id = 'b'", "column v of row 1 of source.query: a number in it is too large"},
		{"the statement itself", "SELECT id FROMM t", `near "t": syntax error`},
	} {
		_, err := rowsOf(t, path, c.query)
		if got := fmt.Sprint(err); !strings.Contains(got, c.want) || strings.Contains(got, secretValue) || strings.Contains(got, "1e999") {
			t.Errorf("%s: got %s", c.reason, got)
		}
	}
	for text, want := range map[string]string{
		"UPDATE t SET id = $id":                           "UNIQUE constraint failed: t.id",
		"UPDATE t SET n = 7 WHERE id = $id":               "CHECK constraint failed",
		"UPDATE t SET v = $id WHERE id = $id":             "a trigger refused it",
		"UPDATE t SET n = json_extract('{}', $id)":        "bad JSON path: …",
		"UPDATE t SET n = 1 WHERE id = $id AND other = 1": "no such column: other",
	} {
		w := newWriter(t, SQLiteWriter, path, text)
		err := w.set(t.Context(), map[string]any{"id": secretValue})
		if got := fmt.Sprint(err); !strings.Contains(got, want) || strings.Contains(got, secretValue) {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

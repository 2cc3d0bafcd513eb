package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Hold begins a transaction of another client with some statements, which stays open until end is called.
func (s *Server) Hold(t testing.TB, statements ...string) (end func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	for _, statement := range append([]string{"BEGIN"}, statements...) {
		exec(statement)
	}
	return func() { t.Helper(); exec("COMMIT") }
}

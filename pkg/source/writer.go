package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/corollary-dev/corollary/pkg/sqltext"
)

// WriterOptions say what is written.
type WriterOptions struct {
	// Driver is the kind of the database, such as SQLiteWriter.
	Driver WriteDriver
	// DSN returns where the database is, as in Options.
	DSN func(ctx context.Context) (string, error)
	// Statement is executed for each row.
	Statement *sqltext.Statement
	// Timeout is the longest time of one execution.
	Timeout time.Duration
}

// A WriteDriver opens a connection that writes. The DSN is part of no error.
type WriteDriver func(ctx context.Context, dsn string, o *WriterOptions) (WriteConnection, error)

// WriteConnection is one connection that writes.
type WriteConnection interface {
	// exec executes the statement with the values of its parameters, which are text, int64 or bool. The database gives it
	// up before the deadline of ctx, even if nobody asks it to.
	exec(ctx context.Context, values []any) error
	close()
}

// A Writer executes one statement with other values each time. It is for one goroutine at a time.
type Writer struct {
	options WriterOptions
	conn    WriteConnection
}

// NewWriter prepares a writer. It connects at the first write.
func NewWriter(o WriterOptions) *Writer { return &Writer{options: o} }

// RefusedError is the answer of a database that refused a statement for its values or its text. Other errors are about
// the connection.
type RefusedError struct{ cause error }

func (e *RefusedError) Error() string { return e.cause.Error() }

func (e *RefusedError) Unwrap() error { return e.cause }

// Write executes the statement with the values of its parameters. Once connected, it asks allowed whether it still may.
// The error names neither the database's address nor credentials.
func (w *Writer) Write(ctx context.Context, value func(name string) any, allowed func() error) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return err
	}
	var values []any
	for _, name := range w.options.Statement.Names() {
		v := value(name)
		if text, ok := v.(string); ok {
			v = strings.ToValidUTF8(text, string(utf8.RuneError))
		}
		values = append(values, v)
	}
	if err := allowed(); err != nil {
		return err
	}
	err := w.conn.exec(ctx, values)
	if err == nil {
		return nil
	}
	var refused *RefusedError
	if !errors.As(err, &refused) {
		w.Close() // the connection is in no known state
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("source.writeBack took longer than %s, which is allowed by source.timeout (%s) and the time for "+
			"which this "+
			"process may write without another renewal", time.Since(begun).Round(time.Millisecond), w.options.Timeout)
	}
	return fmt.Errorf("executing source.writeBack: %w", err)
}

// Close closes the connection. The next write opens another one.
func (w *Writer) Close() {
	if w.conn != nil {
		w.conn.close()
	}
	w.conn = nil
}

func (w *Writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	dsn, err := w.options.DSN(ctx)
	if err != nil {
		return err
	}
	if w.conn, err = w.options.Driver(ctx, dsn, &w.options); err != nil {
		w.conn = nil
		return fmt.Errorf("connecting to the database: %w", err)
	}
	return nil
}

package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options say what is read.
type Options struct {
	// At is where the query is in the config, such as source.
	At string
	// Driver is the kind of the database, such as SQLite.
	Driver Driver
	// DSN returns where the database is. It is called for each connection, so that changed credentials are used. Neither
	// it nor any part of it is logged or part of an error.
	DSN func(ctx context.Context) (string, error)
	// Query is the statement; Key is the column that identifies a row.
	Query, Key string
	// Poll is the time between two executions, Timeout the longest time of one.
	Poll, Timeout time.Duration
	// Listen is the channel of notifications that something has changed; empty for none.
	Listen string
	// Cursor is the column whose value grows with each change of a row; empty for none. A transaction that takes longer
	// than Overlap may commit a value that is too old to be found; an execution for all rows finds it, every Full.
	Cursor        string
	Overlap, Full time.Duration
	// MaxRows is how many rows a result may have.
	MaxRows int
}

// Row is one row of a result.
type Row struct {
	// Key is the text of the key's value.
	Key string
	// Columns are the values by column, of JSON's types; integers are int64. NULL is absent.
	Columns map[string]any
}

// maxRowBytes bounds a row: what an API server would store of an object. maxResultBytes bounds all rows of a result.
const (
	maxRowBytes    = 1 << 20
	maxResultBytes = 256 << 20
)

// minInterval is the shortest time between two executions, whatever the database says.
const minInterval = time.Second

// A Source reads the rows of one query. It is for one goroutine at a time.
type Source struct {
	options Options
	conn    Connection
	last    *position // of the last result
	begun   time.Time // of the last execution
	failed  bool
	cursor  cursor
}

// New prepares a source. It connects at the first read.
func New(o Options) *Source { return &Source{options: o} }

// Read executes the query and calls visit with each row. After an error nothing is known of the rows: those that visit
// was called with are not the result. The doubt is about rows that the result lacks. The error names neither the
// database's address nor credentials.
func (s *Source) Read(ctx context.Context, visit func(Row) error) (doubt Doubt, err error) {
	s.begun = time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	doubt, err = s.read(ctx, visit)
	if s.failed = err != nil; !s.failed {
		return doubt, nil
	}
	s.Close() // a connection after an error is in no known state
	s.cursor = cursor{}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Doubt{}, fmt.Errorf("the query took longer than %s (%s.timeout)", s.options.Timeout, s.options.At)
	}
	return Doubt{}, err
}

// Wait waits until the query is to be executed again, or ctx is done. After a failure it does not wait.
func (s *Source) Wait(ctx context.Context) error {
	if !s.failed {
		waiting, cancel := context.WithDeadline(ctx, s.begun.Add(s.options.Poll))
		defer cancel()
		if s.conn.wait(waiting) != nil {
			s.Close() // reading again connects again
		}
		pause(ctx, time.Until(s.begun.Add(minInterval)))
	}
	return ctx.Err()
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Close closes the connection. The next read opens another one.
func (s *Source) Close() {
	if s.conn != nil {
		s.conn.close()
	}
	s.conn = nil
}

func (s *Source) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	dsn, err := s.options.DSN(ctx)
	if err != nil {
		return err
	}
	if s.conn, err = s.options.Driver(ctx, dsn, &s.options); err != nil {
		s.conn = nil
		return fmt.Errorf("connecting to the database: %w", err)
	}
	return nil
}

func (s *Source) read(ctx context.Context, visit func(Row) error) (Doubt, error) {
	if err := s.connect(ctx); err != nil {
		return Doubt{}, err
	}
	if err := s.conn.begin(ctx); err != nil {
		return Doubt{}, fmt.Errorf("beginning a transaction: %w", err)
	}
	before, err := s.conn.position(ctx) // what the result has at least
	if err != nil {
		return Doubt{}, fmt.Errorf("reading the state of the server: %w", err)
	}
	doubt, err := before.judge(s.last)
	if err != nil {
		return Doubt{}, err
	}
	if before.isNewFile(s.last) {
		s.cursor = cursor{}
	}
	s.cursor.next(&s.options, s.begun, doubt)
	if err := s.readRows(ctx, visit); err != nil {
		return Doubt{}, err
	}
	after, err := s.conn.position(ctx) // what the result has at most
	if err != nil {
		return Doubt{}, fmt.Errorf("reading the state of the server: %w", err)
	}
	if err := s.conn.end(ctx); err != nil {
		return Doubt{}, fmt.Errorf("ending the transaction: %w", err)
	}
	s.last = after
	return doubt, nil
}

func (s *Source) readRows(ctx context.Context, visit func(Row) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // after an error, the rest is not read
	statement, values, err := s.cursor.statement(&s.options, s.conn.dialect())
	if err != nil {
		return fmt.Errorf("reading %s.query: %w", s.options.At, err)
	}
	result, err := s.conn.query(ctx, statement, values...)
	if err != nil {
		return fmt.Errorf("executing %s.query: %w", s.options.At, err)
	}
	r := reader{options: &s.options, rows: result, seen: map[string]struct{}{}, cursor: &s.cursor}
	if err := r.readAll(visit); err != nil {
		cancel()
		result.close()
		return err
	}
	result.close()
	return nil
}

// reader reads the rows of one result.
type reader struct {
	rows

	options *Options
	key     int // the column
	seen    map[string]struct{}
	bytes   int
	cursor  *cursor
}

func (r *reader) readAll(visit func(Row) error) error {
	if err := r.describe(); err != nil {
		return err
	}
	for r.next() {
		row, err := r.row()
		if err != nil {
			return err
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	if err := r.err(); err != nil {
		return fmt.Errorf("executing %s.query: %w", r.options.At, err)
	}
	return nil
}

// describe reads the columns.
func (r *reader) describe() error {
	names := r.columns()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s.query returns two columns %s: name one of them otherwise with AS", r.options.At, name)
		}
	}
	if r.key = slices.Index(names, r.options.Key); r.key < 0 {
		return fmt.Errorf("%[1]s.query returns no column %[2]s, which %[1]s.key names: it returns %[3]s",
			r.options.At, r.options.Key,
			strings.Join(names, ", "))
	}
	return nil
}

// row reads the next row.
func (r *reader) row() (Row, error) {
	o, number := r.options, len(r.seen)+1
	if number > o.MaxRows {
		return Row{}, fmt.Errorf("%[1]s.query returns more than %[2]d rows: select fewer, or raise %[1]s.maxRows", o.At,
			o.MaxRows)
	}
	row, size := Row{Columns: map[string]any{}}, 0
	for i, name := range r.columns() {
		value, err := r.value(i)
		if err != nil {
			return Row{}, fmt.Errorf("reading column %s of row %d of %s.query: %w", name, number, o.At, err)
		}
		if value == nil {
			continue
		}
		row.Columns[name] = value
		size += len(name) + sizeOf(value)
	}
	if err := r.takeCursor(); err != nil {
		return Row{}, err
	}
	if key := row.Columns[o.Key]; key == nil || key == "" {
		return Row{}, fmt.Errorf(
			"row %[1]d of %[2]s.query has no %[3]s: the column that %[2]s.key names must be neither NULL nor empty",
			number, o.At, o.Key)
	}
	row.Key = fmt.Sprint(row.Columns[o.Key])
	// other keys may look the same
	if bound, ok := r.bound(r.key); !ok || fmt.Sprint(bound) != row.Key || isFraction(row.Columns[o.Key]) {
		return Row{}, fmt.Errorf(
			"the column %[1]s of %[2]s.query, which %[2]s.key names, is neither text nor a whole number in row "+
				"%[3]d: cast it to text", o.Key, o.At, number)
	}
	return row, r.take(row.Key, size)
}

// takeCursor takes the value of the cursor's column. If there is no such column, the database has refused the
// statement.
func (r *reader) takeCursor() error {
	c := r.options.Cursor
	i := slices.Index(r.columns(), c)
	if i < 0 {
		return nil
	}
	value, ok := r.bound(i)
	if !ok {
		return fmt.Errorf("the column %[1]s of %[2]s.query, which %[2]s.changes.cursor names, has a type whose values are "+
			"converted: write "+
			"CAST(%[1]s AS TEXT) AS %[1]s", c, r.options.At)
	}
	r.cursor.take(value)
	return nil
}

func isFraction(value any) bool {
	_, isFloat := value.(float64)
	return isFloat
}

// take counts a row.
func (r *reader) take(key string, size int) error {
	if _, twice := r.seen[key]; twice {
		return fmt.Errorf("two rows of %[1]s.query have the %[2]s %[3]q, but %[1]s.key says that it identifies a row",
			r.options.At, r.options.Key, clip(key))
	}
	r.seen[key] = struct{}{}
	switch r.bytes += size; {
	case size > maxRowBytes:
		return fmt.Errorf("the row %q of %s.query has %d bytes, and %d are allowed: select less", clip(key),
			r.options.At, size, maxRowBytes)
	case r.bytes > maxResultBytes:
		return fmt.Errorf("the rows of %s.query have more than %d bytes: select less", r.options.At, maxResultBytes)
	}
	return nil
}

// clip shortens a value of a row for a message.
func clip(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// sizeOf is roughly the length of a value in JSON.
func sizeOf(value any) int {
	size := 2
	switch v := value.(type) {
	case string:
		size += len(v)
	case []any:
		for _, item := range v {
			size += sizeOf(item)
		}
	case map[string]any:
		for key, item := range v {
			size += len(key) + sizeOf(item)
		}
	default:
		size += 8
	}
	return size
}

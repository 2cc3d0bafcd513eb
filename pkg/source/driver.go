package source

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Driver opens a connection to a kind of database. The DSN is part of no error.
type Driver func(ctx context.Context, dsn string, o *Options) (Connection, error)

// Connection is one connection, which only reads.
type Connection interface {
	// begin begins a transaction for the calls of query and position that follow, end ends it.
	begin(ctx context.Context) error
	// query executes a statement with the values of its parameters, which are what bound has returned.
	query(ctx context.Context, statement string, values ...any) (rows, error)
	dialect() dialect
	// position says what the server has when it is called; nil if the database has no positions.
	position(ctx context.Context) (*position, error)
	end(ctx context.Context) error
	// wait waits until the database says that something has changed, or ctx is done. An error means that the connection is
	// lost.
	wait(ctx context.Context) error
	close()
}

// dialect is how a kind of database writes what is not the same in all.
type dialect struct {
	// parameter is the only parameter of a statement.
	parameter string
	// quote is around names; in a name it is doubled.
	quote string
	// order is what an ORDER BY needs for NULL to come first.
	order string
}

// notifies is embedded by connections to databases that never say that something has changed.
type notifies struct{}

func (notifies) wait(ctx context.Context) error { //nolint:unparam // others fail
	<-ctx.Done()
	return nil
}

// rows are the rows of a result.
type rows interface {
	columns() []string
	next() bool
	// value is the value of a column as one of JSON; nil for none.
	value(column int) (any, error)
	// bound is the value of a column as the parameter that the database compares with it; false if there is none.
	bound(column int) (any, bool)
	// err is why there are no more rows; nil if that were all.
	err() error
	close()
}

// plain converts what drivers give for the usual types. Bytes that are not text are base64, times have the form of RFC
// 3339.
func plain(value any) (any, error) {
	switch v := value.(type) {
	case nil, int64, bool:
		return v, nil
	case string:
		return strings.ToValidUTF8(v, string(utf8.RuneError)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // not in JSON
			return strconv.FormatFloat(v, 'g', -1, 64), nil
		}
		return v, nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	}
	return nil, fmt.Errorf("values of type %T are not supported: cast the column to text", value)
}

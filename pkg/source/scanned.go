package source

import "database/sql"

// scannedRows are the rows of a driver of database/sql.
type scannedRows struct {
	*sql.Rows

	types  []*sql.ColumnType
	names  []string
	values []any // of the current row
	into   []any
	failed error
}

// describe reads the columns. After an error, the rows are closed.
func (r *scannedRows) describe() (err error) {
	if r.types, err = r.ColumnTypes(); err != nil {
		r.close()
		return err
	}
	for _, t := range r.types {
		r.names = append(r.names, t.Name())
	}
	r.values, r.into = make([]any, len(r.names)), make([]any, len(r.names))
	for i := range r.values {
		r.into[i] = &r.values[i]
	}
	return nil
}

func (r *scannedRows) columns() []string { return r.names }

func (r *scannedRows) next() bool {
	if r.failed != nil || !r.Next() {
		return false
	}
	r.failed = r.Scan(r.into...)
	return r.failed == nil
}

func (r *scannedRows) err() error {
	if r.failed != nil {
		return r.failed
	}
	return r.Err()
}

func (r *scannedRows) close() { _ = r.Close() } // err returns what went wrong

// Command sqlite3 executes statements in a SQLite file, as the command of that name does: sqlite3 FILE STATEMENTS. It
// replaces it in the tests of the pages, so that nothing has to be installed.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	_ "modernc.org/sqlite" // registers the driver
)

func main() {
	if err := execute(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// execute executes the statements in the arguments, or those on standard input.
func execute(args []string, in io.Reader) error {
	if len(args) == 1 {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		args = append(args, string(text))
	}
	if len(args) != 2 {
		return fmt.Errorf("usage: sqlite3 FILE [STATEMENTS]")
	}
	db, err := sql.Open("sqlite", args[0])
	if err != nil {
		return err
	}
	if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(args[1])), "SELECT") {
		err = show(db, args[1])
	} else {
		_, err = db.Exec(args[1])
	}
	return errors.Join(err, db.Close())
}

// show prints the rows of a query.
func show(db *sql.DB, query string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = value.String
		}
		fmt.Println(strings.Join(texts, "|"))
	}
	return rows.Err()
}

// Command sqlite3 executes statements in a SQLite file, as the command of that name does: sqlite3 FILE STATEMENTS. It replaces it
// in the tests of the pages, so that nothing has to be installed.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"

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
	_, err = db.Exec(args[1])
	return errors.Join(err, db.Close())
}

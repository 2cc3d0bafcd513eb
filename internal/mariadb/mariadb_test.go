//go:build databases

package mariadb_test

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/internal/mariadb"
)

// Servers of several test programs start at the same time. One that starts removes the temporary tables of every other
// one that has the same folder for them, in the middle of what these do.
func TestMySQLServersSideBySide(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			server := mariadb.New(t)
			if got := server.Text("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'test'"); got != "0" {
				t.Errorf("the database test has %s tables, want none", got)
			}
		})
	}
}

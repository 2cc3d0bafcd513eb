package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// An export that is killed again and again, whatever it is doing, starts again and has everything.
func TestExportIsKilled(t *testing.T) {
	t.Parallel()
	memory(t)
	const rows = 60
	dir, exec := exportedThings(t, rows)
	chance := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		p := startWriting(t, testkit.Config(t), export(dir, "-w")...)
		since := exported(t, dir+"/apps.db", "SELECT strftime('%Y-%m-%dT%H:%M:%SZ')")
		if round > 0 {
			testkit.Eventually(t, patience, func() (bool, string) {
				got := exported(t, dir+"/state.db", "SELECT max(written) FROM exports")
				return got >= since, got + ": " + p.text(t)
			})
		} else {
			testkit.Eventually(t, patience, func() (bool, string) {
				_, err := os.Stat(dir + "/state.db")
				return err == nil, p.text(t)
			})
		}
		exec(fmt.Sprintf("UPDATE apps SET extra = '%d'", round))
		timer := time.NewTimer(time.Duration(chance.IntN(2500)) * time.Millisecond)
		<-timer.C
		_ = p.Process.Kill()
		<-p.ended
		if got := exported(t, dir+"/state.db", "PRAGMA integrity_check"); got != "ok" {
			t.Fatalf("round %d: it is damaged: %s", round, got)
		}
	}
	expect(t, 0, "", export(dir)...)
	whole(t, dir+"/state.db", rows)
	if got := exported(t, dir+"/state.db", "SELECT count(*) FROM upstreams WHERE object ->> '$.row.extra' = '7'"); got != fmt.Sprint(rows) {
		t.Errorf("%s rows are current", got)
	}
}

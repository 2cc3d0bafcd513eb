package clusters

import (
	"strings"
	"testing"
	"time"
)

func TestCheckOwners(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	taken := func(received, done int, process string) Taking {
		return Taking{at(received), at(done), 3, process, process, false}
	}
	handed := []Taking{taken(0, 10, "a"), taken(100, 110, ""), taken(200, 210, "b")}
	died := []Taking{taken(0, 10, "a"), taken(200, 210, "b")}
	for _, tt := range []struct {
		takings []Taking
		process string
		at      int
		wrong   string
		reason  string
	}{
		{handed, "a", 50, "", "it holds the shard"},
		{handed, "a", 5, "", "the answer may come later than the write is carried out"},
		{handed, "a", 105, "", "it is just being given up"},
		{handed, "a", 150, "no process held", "it has been given up"},
		{handed, "b", 150, "no process held", "it has not been taken yet"},
		{handed, "b", 205, "", "it is just being taken"},
		{handed, "a", 205, "no process held", "another process is just taking it"},
		{handed, "b", 1000, "", "nobody has taken it since"},
		{died, "a", 205, "", "the moment in which it changes hands"},
		{died, "a", 211, "b held", "taken by another process"},
		{died, "b", 199, "a held", "before it was taken"},
		{nil, "a", 0, "no process held", "nobody has taken it"},
	} {
		got := CheckOwners([]ShardWrite{{at(tt.at), 3, tt.process, "patch"}}, tt.takings)
		if (tt.wrong == "") != (len(got) == 0) || tt.wrong != "" && !strings.Contains(got[0], tt.wrong) {
			t.Errorf("%s at %d: %q, want %q: %s", tt.process, tt.at, got, tt.wrong, tt.reason)
		}
	}
}

func TestOrphaned(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	taken := func(s, shard int, process, by string) Taking { return Taking{at(s), at(s), shard, process, by, false} }
	renewed := map[string]time.Time{"a": at(10), "b": at(90)}
	for _, tt := range []struct {
		takings []Taking
		want    int
		reason  string
	}{
		{[]Taking{taken(0, 1, "a", "a"), taken(17, 1, "b", "b")}, 7, "it was taken from a process that died"},
		{[]Taking{taken(0, 1, "a", "a"), taken(15, 1, "", "b"), taken(18, 1, "b", "b")}, 8, "another process has written down the death"},
		{[]Taking{taken(0, 1, "a", "a"), taken(9, 1, "", "a"), taken(18, 1, "b", "b")}, 0, "it was given up"},
		{[]Taking{taken(0, 1, "a", "a"), {at(40), at(40), 1, "b", "b", true}}, 0, "it died while it loaded the shard"},
		{[]Taking{taken(0, 1, "a", "a"), taken(1, 1, "b", "b")}, 0, "before the time that is asked for"},
		{[]Taking{taken(0, 1, "a", "a"), taken(18, 2, "b", "b")}, 0, "another shard, which nobody held"},
		{[]Taking{taken(0, 1, "a", "a"), taken(18, 1, "a", "a")}, 0, "it was only marked as loaded"},
		{[]Taking{taken(13, 1, "b", "b"), taken(0, 2, "a", "a"), taken(12, 2, "b", "b"), taken(0, 1, "a", "a")}, 3, "the longest of two"},
	} {
		if got := Orphaned(tt.takings, renewed, at(2)); got != time.Duration(tt.want)*time.Second {
			t.Errorf("%v: %s, want %d s: %s", tt.takings, got, tt.want, tt.reason)
		}
	}
}

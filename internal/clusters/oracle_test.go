package clusters

import (
	"testing"
	"time"
)

// TestOracle: what it is to find, it finds, and nothing else.
func TestOracle(t *testing.T) {
	w := func(cluster string, token int64) Write { return Write{Cluster: cluster, Token: token} }
	tests := []struct {
		writes []Write
		wrong  int
		reason string
	}{
		{[]Write{w("a", 1), w("a", NoToken), w("a", 1), w("b", 2), w("b", NoToken), w("a", 3)}, 0, "they take turns"},
		{[]Write{w("a", 1), w("b", 2), w("a", 1)}, 1, "a write with an older token"},
		{[]Write{w("a", 1), w("b", 1)}, 1, "one token in two clusters"},
		{[]Write{w("a", 1), w("b", 2), w("a", NoToken), w("b", 2)}, 1, "a status was written by the passive one"},
		{[]Write{w("a", 1), w("b", 2), w("a", NoToken), w("b", 2), w("a", 3)}, 1, "the same, and it is active later"},
		{[]Write{w("a", 1), w("a", NoToken), w("b", 2)}, 0, "a status at the end"},
		{[]Write{w("a", 1), w("b", NoToken), w("b", 2)}, 0, "a status at the beginning"},
		{[]Write{w("a", 1), w("b", NoToken), w("a", 1)}, 1, "a status by one that was never active"},
	}
	for _, test := range tests {
		for i := range test.writes {
			test.writes[i].At = time.Unix(int64(i), 0)
		}
		if wrong := Check(test.writes); len(wrong) != test.wrong {
			t.Errorf("%s: %q", test.reason, wrong)
		}
	}
}

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

// TestNamed: which writes of a cluster break what a name promises. It is asked each second.
func TestNamed(t *testing.T) {
	p := Promise{After: 4 * time.Second, Until: 3 * time.Second, Late: time.Second}
	at := func(seconds float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
	}
	tests := []struct {
		answers string // one each second: a, b, 2 (both), 0 (nobody), - (no answer)
		write   float64
		wrong   bool
		reason  string
	}{
		{"aaaaaa", 5.5, false, "named for long enough"},
		{"aaaaaa", 1.5, true, "not yet for as long"},
		{"a-----", 4.5, true, "one answer says nothing"},
		{"aaaaab", 7.5, true, "another one is named"},
		{"aaaaab", 5.5, false, "the same, and the write was on its way"},
		{"aaaaa2", 6.5, true, "both are named"},
		{"aaaaa0", 6.5, true, "nobody is named"},
		{"aaaaa---", 7.5, false, "no answers, before the deadline"},
		{"aaaaa-----", 9.5, true, "no answers, after the deadline"},
		{"aaaabaa", 6.5, true, "named anew, and not for as long"},
		{"aaaabaaaaaa", 10.5, false, "named anew for long enough"},
		{"", 1, true, "never asked"},
	}
	for _, test := range tests {
		var answers []Answer
		for i, name := range test.answers {
			named := map[rune][]string{'a': {"a"}, 'b': {"b"}, '2': {"a", "b"}, '0': nil}
			if name != '-' {
				answers = append(answers, Answer{At: at(float64(i)), Names: named[name]})
			}
		}
		writes := []Write{{At: at(test.write), Cluster: "a", Token: NoToken}}
		if wrong := p.CheckNamed(writes, map[string][]Answer{"a": answers}); (len(wrong) > 0) != test.wrong {
			t.Errorf("%s: %q", test.reason, wrong)
		}
	}
}

package shards

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// parse reads a view of process a: one word for each shard, with "|" between. "-" is free, "?" may be held by a
// process, "a" is held, "a*" is being loaded, "3/2" is free after 3 deaths in a group of 2, "a*1/4" is being loaded
// after that, "!" died and is not counted yet.
func parse(t *testing.T, alive, shards string) view {
	t.Helper()
	v := view{self: "a", mine: map[int]bool{}, draining: map[int]bool{}}
	v.alive, v.joining = strings.Fields(strings.TrimPrefix(alive, "joining: ")), strings.HasPrefix(alive, "joining: ")
	for i, word := range strings.Split(shards, "|") {
		s := shard{}
		name, deaths, _ := strings.Cut(strings.TrimLeft(word, "abcdz*?!-"), "/")
		if name != "" {
			if _, err := fmt.Sscan(name+" "+deaths, &s.deaths, &s.group); err != nil {
				t.Fatalf("%s: %v", word, err)
			}
		}
		s.taken, s.died, s.loading = strings.Contains(word, "?"), strings.Contains(word, "!"), strings.Contains(word, "*")
		if word[0] >= 'a' && word[0] <= 'z' {
			s.holder, s.named = word[:1], word[:1]
		}
		v.mine[i] = s.holder == v.self
		v.shards = append(v.shards, s)
	}
	return v
}

func TestPlan(t *testing.T) {
	for _, c := range []struct{ reason, alive, shards, want string }{
		{"the only process takes all", "a", "-|-|-", "take 0, take 1, take 2"},
		{"each takes its own part of what is free", "a b", "-|-|-|-", "take 0, take 1"},
		{"a process that has just joined takes nothing: others may have started with it", "joining: a", "-|1/2|b", ""},
		{"but it gives up what it should not have", "joining: a b", "a|a", "drain 1"},
		{"the second of two takes the rest", "0 a", "-|-|-", "take 2"},
		{"all have their share: nothing moves", "a b", "a|a|b|b", ""},
		{"shares that differ by one are fair", "a b", "b|a|b|a|b", ""},
		{"a process has joined: the holder gives back half, from the end", "a b", "a|a|a|a", "drain 2, drain 3"},
		{"a third one has joined: each gives up as little as possible", "a b c", "a|a|a|b|b|b", "drain 2"},
		{"what is being given back is not given back twice, and a fifth process gets its share of three", "a b", "a|a|b", ""},
		{"nobody takes what somebody may hold", "a", "?|-", "take 1"},
		{"a holder that is silent still holds", "a", "z|z|-", "take 2"},
		{"a death is counted before the shard is taken", "a", "!|-", "blame 0, take 1"},
		{"half of the suspects are tried", "a", "1/4|1/4|1/4|1/4", "take 0, take 1"},
		{"suspects are tried once all others are loaded", "a", "a*|1/2|1/2", ""},
		{"while one process tries suspects, others do not", "a b", "b*1/2|1/2|a|b", ""},
		{"the fewer deaths come first", "a", "2/2|1/4|1/4|2/2", "take 1, take 2"},
		{"one that killed three alone is left alone", "a", "3/1|a", ""},
		{"one that killed three with others is tried alone", "a", "3/2|a", "take 0"},
		{"while a suspect is tried, nothing else is loaded with it", "a", "a*1/2|-", ""},
		{"shards in quarantine count for nobody", "a b", "3/1|3/1|a|b", ""},
	} {
		var got []string
		for _, a := range plan(parse(t, c.alive, c.shards)) {
			got = append(got, fmt.Sprintf("%s %d", a.verb, a.shard))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: of %s, %s: got %q, want %q", c.reason, c.alive, c.shards, strings.Join(got, ", "), c.want)
		}
	}
}

func TestPlanOfProcesses(t *testing.T) {
	v := parse(t, "a", "a|z")
	v.silent, v.gone = []string{"z"}, []string{"y"}
	v.shards[1] = shard{holder: "z", named: "z"}
	want := []action{{verb: markDead, process: "z"}, {verb: reap, process: "y"}}
	if got := plan(v); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	v.silent, v.gone, v.shards[1] = nil, []string{"z"}, shard{named: "z"}
	want = []action{{verb: take, shard: 1}}
	if got := plan(v); !slices.Equal(got, want) {
		t.Errorf("the Lease of a process stays as long as a shard names it: got %v, want %v", got, want)
	}
}

package shards

import (
	"cmp"
	"slices"
)

// shard is what is known of one shard.
type shard struct {
	// holder is the process that its Lease names, as long as that one may act for it; empty if none may.
	holder string
	// named is the holder in its Lease, whether it may act or not.
	named string
	// taken is true while no process is known to hold it, and one may: its Lease was deleted or edited by hand just now.
	taken bool
	// died is true if its holder died while it was loading, and that is not counted yet.
	died bool
	// loading is true from when it was taken until its objects have been loaded and reconciled once.
	loading bool
	// deaths is how many holders in a row died while it was loading, and group how many shards were loading with it at the
	// last one.
	deaths, group int
}

// deathsAllowed is how many holders in a row may die while they load a shard.
const deathsAllowed = 3

// quarantined reports whether nobody is to take the shard: so many holders died while it was loading, the last one
// while nothing else was.
func (s shard) quarantined() bool { return s.deaths >= deathsAllowed && s.group <= 1 && !s.loading }

// suspect reports whether a holder died while it was loading, and it has not been loaded since.
func (s shard) suspect() bool { return s.deaths > 0 && !s.quarantined() }

// free reports whether it may be taken.
func (s shard) free() bool { return s.holder == "" && !s.taken && !s.died && !s.quarantined() }

// view is what one process knows of all.
type view struct {
	self string
	// alive are the processes that renew their Leases, this one among them; silent those that did not for a lease
	// duration.
	alive, silent []string
	// gone are those that are certain to write no more.
	gone   []string
	shards []shard
	// mine are the shards that this process holds, drains, or has not quite lost: it takes none of these.
	mine map[int]bool
	// draining are those of them that it gives up.
	draining map[int]bool
	// joining is true for a retry period after this process joined. It takes no shard yet: others may have started with
	// it, and what it loaded in their place, they would load again.
	joining bool
}

// loads reports whether a process is loading any shard, and trying whether one that is suspect.
func (v view) loads(name string) bool {
	return slices.ContainsFunc(v.shards, func(s shard) bool { return s.holder == name && s.loading })
}

func (v view) trying(name string) bool {
	return slices.ContainsFunc(v.shards, func(s shard) bool { return s.holder == name && s.loading && s.suspect() })
}

// verb is what a process does with a Lease.
type verb string

const (
	markDead verb = "mark"    // the Lease of a process that is silent, so that it can never renew it again
	blame    verb = "blame"   // a shard whose holder died while it was loading
	take     verb = "take"    // a shard that is free
	drain    verb = "drain"   // a shard that others should have
	reap     verb = "discard" // the Lease of a process that is gone, and that no shard names
)

// action is one step of a process.
type action struct {
	verb    verb
	process string
	shard   int
}

// plan is what a process does next, by what it knows. All that know the same plan the same assignment, so that they
// take different shards; where they do not, the API server lets one of them take a shard.
func plan(v view) []action {
	var actions []action
	for _, name := range v.silent {
		actions = append(actions, action{verb: markDead, process: name})
	}
	rank := slices.Index(v.alive, v.self)
	if rank < 0 {
		return actions
	}
	for i, s := range v.shards {
		if s.died && i%len(v.alive) == rank {
			actions = append(actions, action{verb: blame, shard: i})
		}
	}
	if rank == 0 {
		for _, name := range v.gone {
			if !slices.ContainsFunc(v.shards, func(s shard) bool { return s.named == name }) {
				actions = append(actions, action{verb: reap, process: name})
			}
		}
	}
	a := assign(v)
	for _, i := range a.drained[v.self] {
		actions = append(actions, action{verb: drain, shard: i})
	}
	if v.joining {
		return actions
	}
	for _, i := range a.taken[v.self] {
		actions = append(actions, action{verb: take, shard: i})
	}
	return append(actions, trial(v, a)...)
}

// assignment is who takes and gives up which shards, and who has room for how many more after that.
type assignment struct {
	taken, drained map[string][]int
	room           map[string]int
}

// shares are how many shards each process should hold. They differ by one at most, and those that hold the most keep
// the greater ones, so that nothing moves once all have their share.
func shares(v view, held map[string][]int) map[string]int {
	total := 0
	for _, s := range v.shards {
		if !s.quarantined() {
			total++
		}
	}
	ranked := slices.Clone(v.alive)
	slices.SortStableFunc(ranked, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(held[b]), len(held[a])), cmp.Compare(a, b))
	})
	list := map[string]int{}
	for i, name := range ranked {
		list[name] = total / len(ranked)
		if i < total%len(ranked) {
			list[name]++
		}
	}
	return list
}

// assign shares the shards among the processes that are alive.
func assign(v view) assignment {
	held, unheld := map[string][]int{}, []int(nil)
	for i, s := range v.shards {
		switch {
		case s.holder != "":
			held[s.holder] = append(held[s.holder], i)
		case s.free() && !s.suspect():
			unheld = append(unheld, i)
		}
	}
	a := assignment{taken: map[string][]int{}, drained: map[string][]int{}, room: map[string]int{}}
	list := shares(v, held)
	for _, name := range v.alive {
		more := list[name] - len(held[name])
		if more < 0 {
			a.drained[name] = held[name][list[name]:]
			continue
		}
		if v.trying(name) {
			continue
		}
		n := min(more, len(unheld))
		a.taken[name], unheld = unheld[:n:n], unheld[n:]
		a.room[name] = more - n
	}
	a.taken[v.self] = slices.DeleteFunc(slices.Clone(a.taken[v.self]), func(i int) bool { return v.mine[i] })
	a.drained[v.self] = slices.DeleteFunc(slices.Clone(a.drained[v.self]), func(i int) bool { return v.draining[i] })
	return a
}

// trial has one process at a time, of all, load some suspects while it loads nothing else: half of the group that was
// loading when a holder died. So a shard that kills its holders is found by halving, and does not kill all processes in
// turn.
func trial(v view, a assignment) []action {
	first := v.firstSuspect()
	tries := slices.IndexFunc(v.alive, func(name string) bool {
		return a.room[name] > 0 && len(a.taken[name]) == 0 && !v.loads(name)
	})
	if first < 0 || tries < 0 || v.alive[tries] != v.self || len(v.draining) > 0 {
		return nil
	}
	var actions []action
	like := v.shards[first]
	most := min(max(like.group/2, 1), a.room[v.self])
	for i, s := range v.shards {
		if len(actions) < most && v.mayTry(i) && s.deaths == like.deaths && s.group == like.group {
			actions = append(actions, action{verb: take, shard: i})
		}
	}
	return actions
}

// mayTry reports whether a shard is suspect, and this process may take it to try it.
func (v view) mayTry(i int) bool { return v.shards[i].free() && v.shards[i].suspect() && !v.mine[i] }

// firstSuspect is the suspect that is tried next; -1 for none, or while one is being tried.
func (v view) firstSuspect() int {
	first := -1
	for i, s := range v.shards {
		switch {
		case s.loading && s.holder != "" && s.suspect():
			return -1
		case v.mayTry(i) && (first < 0 || better(s, v.shards[first])):
			first = i
		}
	}
	return first
}

// better reports whether the suspect a is tried before b: the fewer deaths, the more likely it is innocent.
func better(a, b shard) bool {
	return a.deaths < b.deaths || a.deaths == b.deaths && a.group > b.group
}

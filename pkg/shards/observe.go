package shards

import (
	"maps"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// mostBelieved is how many times one's own lease duration that of another process may be.
const mostBelieved = 10

// observer is what one process has seen of the Leases of its set. It counts by its own clock alone.
type observer struct {
	names
	self   string
	number int
	lease  time.Duration // our own lease duration
	// founded is true if nobody held the Lease of the set when this process took it: a shard without a Lease is free then.
	founded bool

	processes map[string]*leadership.Sight
	// doubts are the shards that no process is known to hold, though one may.
	doubts map[int]doubt
	// exists are the shards whose Lease was seen.
	exists map[int]bool
	// leases and heartbeat are what was listed last: the Leases of shards and of processes.
	leases    map[int]*coordinationv1.Lease
	heartbeat map[string]*coordinationv1.Lease
}

// doubt is a state of a Lease that does not say who holds it, and since when that is so.
type doubt struct {
	state string
	since time.Time
}

func newObserver(n names, self string, number int, lease time.Duration) *observer {
	return &observer{names: n, self: self, number: number, lease: lease,
		processes: map[string]*leadership.Sight{}, doubts: map[int]doubt{},
		exists: map[int]bool{}}
}

// observe takes in the Leases that were listed now, and returns what is known by them.
func (o *observer) observe(list []coordinationv1.Lease, now time.Time) view {
	o.leases, o.heartbeat = map[int]*coordinationv1.Lease{}, map[string]*coordinationv1.Lease{}
	for i := range list {
		if k, ok := o.shardOf(list[i].Name); ok {
			if k < o.number {
				o.leases[k] = &list[i]
			}
		} else if name, ok := o.processOf(list[i].Name); ok {
			o.heartbeat[name] = &list[i]
		}
	}
	v := view{self: o.self}
	o.seeProcesses(&v, now)
	for k := range o.number {
		v.shards = append(v.shards, o.seeShard(k, now))
	}
	return v
}

// seeProcesses sorts the processes into those that are alive, silent and gone.
func (o *observer) seeProcesses(v *view, now time.Time) {
	maps.DeleteFunc(o.processes, func(name string, _ *leadership.Sight) bool { return o.heartbeat[name] == nil })
	for _, name := range slices.Sorted(maps.Keys(o.heartbeat)) {
		record := resourcelock.LeaseSpecToLeaderElectionRecord(&o.heartbeat[name].Spec)
		record.LeaseDurationSeconds = min(record.LeaseDurationSeconds, mostBelieved*int(o.lease/time.Second))
		sight := o.processes[name]
		if sight == nil {
			sight = &leadership.Sight{}
			o.processes[name] = sight
		}
		sight.Observe(record, now)
		switch {
		case name != o.self && sight.Held(now) && o.heartbeat[name].Labels[o.label()] != strconv.Itoa(o.number):
			// It has another number of shards, and ends as soon as it sees that: it takes none.
		case name == o.self || sight.Held(now):
			v.alive = append(v.alive, name)
		case record.HolderIdentity == "" && sight.Holder() == "":
			v.gone = append(v.gone, name)
		default:
			v.silent = append(v.silent, name)
		}
	}
	if o.heartbeat[o.self] == nil { // deleted by hand: the next renewal makes it again
		v.alive = append(v.alive, o.self)
		slices.Sort(v.alive)
	}
}

// seeShard returns what the Lease of one shard says, together with that of its holder.
func (o *observer) seeShard(k int, now time.Time) shard {
	lease := o.leases[k]
	if lease == nil {
		return shard{taken: (!o.founded || o.exists[k]) && o.doubted(k, "deleted", now)}
	}
	o.exists[k] = true
	r := o.read(lease, o.number)
	s := shard{holder: r.holder, named: r.holder, loading: r.loading, deaths: r.deaths, group: r.group}
	holder := o.heartbeat[r.holder]
	switch {
	case r.given:
		delete(o.doubts, k)
		s.loading = false
	case r.holder == "":
		s.loading = false
		s.taken = o.doubted(k, "no holder", now)
	case holder == nil && r.holder != o.self:
		s.holder = ""
		s.taken = o.doubted(k, r.holder, now)
		s.died = r.loading && !s.taken
	case o.gone(r.holder):
		delete(o.doubts, k)
		s.holder = ""
		_, killed := holder.Annotations[o.dead()]
		s.died = r.loading && killed
		s.loading = s.died
	case r.holder != o.self: // who holds it by itself is decided by adopt
		delete(o.doubts, k)
	}
	return s
}

// spoiled reports whether the Lease of a shard that has been loaded says otherwise: someone has edited it.
func (o *observer) spoiled(k int) bool {
	lease := o.leases[k]
	if lease == nil {
		return false
	}
	for _, key := range []string{o.loading(), o.deaths(), o.group()} {
		if _, ok := lease.Annotations[key]; ok {
			return true
		}
	}
	return lease.Labels[o.label()] != strconv.Itoa(o.number)
}

// gone reports whether a process is certain to write no more.
func (o *observer) gone(name string) bool {
	sight := o.processes[name]
	return name != o.self && sight != nil && sight.Holder() == "" && o.heartbeat[name] != nil
}

// doubted reports whether a process may still hold a shard: its Lease has been in a state that no process brings about
// for less than a lease duration, in which the holder finds that out.
func (o *observer) doubted(k int, state string, now time.Time) bool {
	d := o.doubts[k]
	if d.state != state {
		d = doubt{state, now}
		o.doubts[k] = d
	}
	return now.Sub(d.since) < o.lease
}

package work

import (
	"container/heap"
	"maps"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
)

const (
	// turnEvery says how many reconciles one of what waits at a low priority follows, and what part of the time is for
	// these: of tens of thousands at a start, most need no request.
	turnEvery = 8
	// turnEveryTaken is turnEvery while upstreams of a shard that was taken over wait. Those that changed had no process
	// for as long as the Lease of the last one lasted, and a process that dies meanwhile makes all of them suspect: they
	// are as urgent as what changes now.
	turnEveryTaken = 2
	// mostGone is how many entries the order may have of what waits no longer, in addition to as many as wait.
	mostGone = 100
	// mostSaved bounds the time that reconciles take before turns have their part of it.
	mostSaved = time.Second
)

// PriorityTurn goes before everything else.
const PriorityTurn = informers.PriorityNow + 1

// Turns are for what is queued at a priority below PriorityNow. While upstreams change faster than they are reconciled,
// the queue never comes to it: a start, a shard that was taken over, or a changed input would wait until the changes
// end. So the one that has waited for the longest time has its turn now and then.
type Turns struct {
	mu sync.Mutex
	// waiting has what was not reconciled since it was queued.
	waiting map[operator.Ref]place
	most    int      // of waiting, since it was made
	order   sequence // of what waits, and of some that waits no longer
	added   int      // to order, ever
	count   int      // reconciles since the last turn
	every   int      // turnEvery or turnEveryTaken, as at the last reconcile
	// turned is how long turns took since something waits, and others how long all other reconciles. A turn that has not
	// ended counts in it with the time in underWay: what the last one took.
	turned, others, last time.Duration
	underWay             map[operator.Ref]time.Duration
}

// place is from when on something may have its turn; number is the order of those of one time.
type place struct {
	at     time.Time
	number int
}

type turn struct {
	ref operator.Ref
	place
}

// Add notes what enqueue adds to the queue. None of it begins before it is both noted and queued.
func (t *Turns) Add(priority int, after time.Duration, refs []operator.Ref, enqueue func()) {
	if priority >= informers.PriorityNow || len(refs) == 0 {
		enqueue()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer enqueue()
	if t.waiting == nil {
		t.waiting = map[operator.Ref]place{}
	}
	at := time.Now().Add(after)
	for _, ref := range refs {
		if before, ok := t.waiting[ref]; ok && !before.at.After(at) {
			continue
		}
		t.added++
		t.waiting[ref] = place{at, t.added}
		t.most = max(t.most, len(t.waiting))
		heap.Push(&t.order, turn{ref, t.waiting[ref]})
	}
	if len(t.order) > 2*len(t.waiting)+mostGone {
		t.tidy()
	}
}

// tidy makes an order of what waits alone.
func (t *Turns) tidy() {
	order := make(sequence, 0, len(t.waiting))
	for _, one := range t.order {
		if t.waits(one) {
			order = append(order, one)
		}
	}
	heap.Init(&order)
	t.order = order
}

// Begin notes that an upstream is being reconciled, and whether others wait that were taken over. It returns what is to
// follow it, if ok is true.
func (t *Turns) Begin(ref operator.Ref, taken bool) (next operator.Ref, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(ref)
	if t.every = turnEvery; taken {
		t.every = turnEveryTaken
	}
	if t.count++; t.count < t.every && t.turned*time.Duration(t.every-1) >= t.others {
		return next, false
	}
	t.count = 0
	for len(t.order) > 0 && !t.waits(t.order[0]) {
		heap.Pop(&t.order)
	}
	if len(t.order) == 0 || t.order[0].at.After(time.Now()) {
		t.turned, t.others = 0, 0
		return next, false
	}
	next = heap.Pop(&t.order).(turn).ref
	t.leave(next)
	if t.underWay == nil {
		t.underWay = map[operator.Ref]time.Duration{}
	}
	t.underWay[next] = t.last
	t.turned += t.last
	return next, true
}

// End notes how long a reconcile took.
func (t *Turns) End(ref operator.Ref, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if counted, isTurn := t.underWay[ref]; isTurn {
		delete(t.underWay, ref)
		t.turned, t.last = max(0, t.turned+took-counted), took
		return
	}
	t.others = min(t.others+took, t.turned*time.Duration(t.every-1)+mostSaved)
}

// leave notes that an upstream waits no more. A map never becomes smaller by itself: after a start, it would have room
// for all upstreams.
func (t *Turns) leave(ref operator.Ref) {
	delete(t.waiting, ref)
	if n := len(t.waiting); t.most > 1000 && n < t.most/8 {
		few := make(map[operator.Ref]place, n)
		maps.Copy(few, t.waiting)
		t.waiting, t.most = few, n
		t.tidy()
	}
}

// waits reports whether it was not reconciled since.
func (t *Turns) waits(one turn) bool { return t.waiting[one.ref].number == one.number }

// sequence is a heap: the earliest first.
type sequence []turn

// Len implements heap.Interface, as the others do.
func (s sequence) Len() int { return len(s) }

// Less orders by time, then as they were added.
func (s sequence) Less(i, k int) bool {
	return s[i].at.Before(s[k].at) || s[i].at.Equal(s[k].at) && s[i].number < s[k].number
}

// Swap swaps two.
func (s sequence) Swap(i, k int) { s[i], s[k] = s[k], s[i] }

// Push adds one at the end.
func (s *sequence) Push(one any) { *s = append(*s, one.(turn)) }

// Pop removes the last one.
func (s *sequence) Pop() any {
	last := len(*s) - 1
	one := (*s)[last]
	*s = (*s)[:last]
	return one
}

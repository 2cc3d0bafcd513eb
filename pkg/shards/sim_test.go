package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

var resource = schema.GroupResource{Resource: "leases"}

// memory keeps Leases as an API server does: by resourceVersion, one write after the other.
type memory struct {
	version int
	leases  map[string]*coordinationv1.Lease
	// written is called after each write; nil for nothing.
	written func()
}

func (m *memory) List(_ context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	list := &coordinationv1.LeaseList{}
	for _, name := range slices.Sorted(maps.Keys(m.leases)) {
		if _, ok := m.leases[name].Labels[o.LabelSelector]; !ok && o.FieldSelector != "metadata.name="+name {
			continue
		}
		list.Items = append(list.Items, *m.leases[name].DeepCopy())
	}
	return list, nil
}

func (m *memory) store(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	m.version++
	lease = lease.DeepCopy()
	lease.ResourceVersion = strconv.Itoa(m.version)
	if m.leases[lease.Name] = lease; m.written != nil {
		m.written()
	}
	return lease.DeepCopy(), nil
}

func (m *memory) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if m.leases[lease.Name] != nil {
		return nil, apierrors.NewAlreadyExists(resource, lease.Name)
	}
	return m.store(lease)
}

func (m *memory) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if there := m.leases[lease.Name]; there == nil || there.ResourceVersion != lease.ResourceVersion {
		return nil, apierrors.NewConflict(resource, lease.Name, errors.New("written since"))
	}
	return m.store(lease)
}

func (m *memory) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	if there := m.leases[name]; there == nil || *o.Preconditions.ResourceVersion != there.ResourceVersion {
		return apierrors.NewConflict(resource, name, errors.New("written since"))
	}
	delete(m.leases, name)
	return nil
}

// actor is a process of a simulation.
type actor struct {
	*Member
	heartbeat *coordinationv1.Lease
	renewed   time.Time // true time of the last renewal
	frozen    int       // for how many steps it does nothing
	dead      bool
}

// sim runs processes in a time of its own.
type sim struct {
	*memory
	t      *testing.T
	random *rand.Rand
	now    time.Time
	actors []*actor
	number int
	// kills are shards that kill a process that loads them.
	kills map[int]bool
	died  int
}

func newSim(t *testing.T, number int) *sim {
	return &sim{memory: &memory{leases: map[string]*coordinationv1.Lease{}}, t: t, random: rand.New(rand.NewPCG(1, uint64(number))),
		now: time.Unix(1e9, 0), number: number, kills: map[int]bool{}}
}

func (s *sim) join() {
	o := Options{Namespace: "ns", ID: "id", N: s.number, Timings: leadership.DefaultTimings(), Log: logr.Discard()}
	a := &actor{Member: newMember(o, fmt.Sprintf("p%02d", len(s.actors)))}
	apart := time.Duration(s.random.IntN(7200)-3600) * time.Second
	a.now = func() time.Time { return s.now.Add(apart) }
	a.leases = s.memory
	a.mayWrite = func() error {
		if s.now.Sub(a.renewed) >= o.RenewDeadline {
			return errors.New("not renewed")
		}
		return nil
	}
	a.seen.founded = len(s.actors) == 0
	s.actors = append(s.actors, a)
	s.renew(a)
}

// renew renews the Lease of a process, or ends the process if it is not its own any more.
func (s *sim) renew(a *actor) {
	n := names{"id"}
	at, duration := metav1.NewMicroTime(a.now()), int32(15)
	if a.heartbeat == nil {
		a.heartbeat = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.process(a.name),
			Labels: map[string]string{n.label(): strconv.Itoa(s.number)}}}
		a.heartbeat.Spec.HolderIdentity, a.heartbeat.Spec.LeaseDurationSeconds, a.heartbeat.Spec.RenewTime = &a.name, &duration, &at
		a.heartbeat, _ = s.Create(context.Background(), a.heartbeat, metav1.CreateOptions{})
		a.renewed = s.now
		return
	}
	next := a.heartbeat.DeepCopy()
	next.Spec.RenewTime = &at
	next, err := s.Update(context.Background(), next, metav1.UpdateOptions{})
	if err != nil {
		a.dead = true
		return
	}
	a.heartbeat, a.renewed = next, s.now
}

// leave gives the Lease of a process back.
func (s *sim) leave(a *actor) {
	free, duration := a.heartbeat.DeepCopy(), int32(released)
	at, nobody := metav1.NewMicroTime(a.now()), ""
	free.Spec.HolderIdentity, free.Spec.LeaseDurationSeconds, free.Spec.RenewTime = &nobody, &duration, &at
	_, _ = s.Update(context.Background(), free, metav1.UpdateOptions{})
	a.dead = true
}

// edit does to the Lease of a shard what someone may do by hand.
func (s *sim) edit() {
	n := names{"id"}
	lease := s.leases[n.shard(s.random.IntN(s.number))]
	if lease == nil {
		return
	}
	lease = lease.DeepCopy()
	holder := s.actors[s.random.IntN(len(s.actors))].name
	switch s.random.IntN(5) {
	case 0:
		delete(s.leases, lease.Name)
		return
	case 1:
		holder = ""
	case 2:
		delete(lease.Labels, n.label())
	case 3:
		lease.Annotations = map[string]string{n.loading(): "no", n.deaths(): "many", n.group(): "-1"}
	}
	lease.Spec.HolderIdentity = &holder
	_, _ = s.store(lease)
}

// step lets half a second pass, and then each process do something, in any order.
func (s *sim) step() {
	s.now = s.now.Add(500 * time.Millisecond)
	for _, i := range s.random.Perm(len(s.actors)) {
		a := s.actors[i]
		if a.frozen > 0 {
			a.frozen--
		}
		if a.dead || a.frozen > 0 {
			continue
		}
		if s.now.Sub(a.renewed) >= 2*time.Second {
			s.renew(a)
		}
		if s.check(); a.dead {
			continue
		}
		must.Get(a.look(context.Background())).In(s.t)
		s.settle(a)
	}
	s.check()
}

// settle waits for what the process does beside its loop, which takes no time here.
func (s *sim) settle(a *actor) {
	for k := range s.kills {
		a.mu.Lock()
		h := a.held[k]
		fatal := h != nil && !h.recorded
		a.mu.Unlock()
		if fatal {
			a.dead = true
			s.died++
			return
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		a.mu.Lock()
		busy := false
		for _, h := range a.held {
			busy = busy || h.phase == loading || h.phase == draining || h.phase == lost
		}
		a.mu.Unlock()
		if !busy {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal("a shard is neither loaded nor given up")
		}
	}
}

// check fails if two processes may write for one shard.
func (s *sim) check() {
	for k := range s.number {
		holder := ""
		for _, a := range s.actors {
			if a.dead || a.mayWrite() != nil || !a.Has(k) || a.frozen > 0 && s.now.Sub(a.renewed) >= 10*time.Second {
				continue
			}
			if holder != "" {
				s.t.Fatalf("shard %d is held by %s and by %s", k, holder, a.name)
			}
			holder = a.name
		}
	}
}

// counts are the shards of each process that is alive, in ascending order.
func (s *sim) counts() []int {
	var list []int
	for _, a := range s.actors {
		if !a.dead {
			list = append(list, a.count(active))
		}
	}
	slices.Sort(list)
	return list
}

// Whatever joins, leaves, dies, freezes or is edited by hand: a shard has one holder at a time, and in the end all have
// their fair share.
func TestShardsConvergeAndHaveOneHolder(t *testing.T) {
	for round := range 60 {
		s := newSim(t, 1+round%20)
		s.random = rand.New(rand.NewPCG(2, uint64(round)))
		s.join()
		for range 120 {
			if a := s.actors[s.random.IntN(len(s.actors))]; s.random.IntN(8) == 0 && !a.dead && a.frozen == 0 {
				switch s.random.IntN(5) {
				case 0:
					s.leave(a)
				case 1:
					a.dead = true // killed
				case 2:
					a.frozen = s.random.IntN(60)
				case 3:
					if len(s.actors) < 12 {
						s.join()
					}
				case 4:
					s.edit()
				}
			}
			s.step()
		}
		s.join()
		for range 200 {
			s.step()
		}
		counts := s.counts()
		total := 0
		for _, n := range counts {
			total += n
		}
		if total != s.number || counts[len(counts)-1]-counts[0] > 1 {
			t.Errorf("round %d: %d shards are shared as %v", round, s.number, counts)
		}
		leases := 0
		for name := range s.leases {
			if _, ok := (names{"id"}).processOf(name); ok {
				leases++
			}
		}
		if leases != len(counts) {
			t.Errorf("round %d: %d Leases of processes are left, and %d processes", round, leases, len(counts))
		}
	}
}

// A fatal shard is found, and kills a few processes at most.
func TestAShardThatKillsIsQuarantined(t *testing.T) {
	for _, number := range []int{1, 4, 16} {
		s := newSim(t, number)
		s.kills[number/2] = true
		for range 3 {
			s.join()
		}
		for range 1500 {
			s.step()
			alive := 0
			for _, a := range s.actors {
				if !a.dead {
					alive++
				}
			}
			for range 3 - alive { // restarted
				s.join()
			}
		}
		total := 0
		for _, n := range s.counts() {
			total += n
		}
		must.Same(t, number-1, total, "of", number, "shards", "are held, and one is fatal")
		if s.died > 6 {
			t.Errorf("of %d shards, one killed %d processes", number, s.died)
		}
	}
}

// A look ends soon, however long its writes take: what it does follows from Leases that someone may have edited since.
// Each look goes on where the one before ended.
func TestLookEndsSoonThoughWritesTakeLong(t *testing.T) {
	s := newSim(t, 16)
	s.join()
	p := s.actors[0]
	s.written = func() { s.now = s.now.Add(time.Second) }
	isLeft := func(h *held) bool { return !h.recorded }
	for looks := 1; len(p.held) < s.number || slices.ContainsFunc(slices.Collect(maps.Values(p.held)), isLeft); looks++ {
		s.renew(p)
		begun := s.now
		must.Get(p.look(t.Context())).In(t)
		if took := s.now.Sub(begun); took > p.options.RetryPeriod+2*time.Second {
			t.Fatalf("look %d took %s, the retry period is %s", looks, took, p.options.RetryPeriod)
		}
		if s.settle(p); looks > 100 {
			t.Fatalf("after %d looks, the process holds %d of %d shards", looks, p.count(active), s.number)
		}
	}
}

// A process that has another number of shards ends as soon as it sees that. Until then, nobody makes room for it.
func TestProcessWithAnotherNumberTakesNoPart(t *testing.T) {
	s := newSim(t, 16)
	s.join()
	s.join()
	for range 60 {
		s.step()
	}
	s.number = 32
	s.join()
	s.number = 16
	other := s.actors[2]
	s.actors = s.actors[:2]
	for range 20 {
		s.renew(other)
		s.step()
		if counts := s.counts(); !slices.Equal(counts, []int{8, 8}) {
			t.Fatalf("beside a process with 32 shards, two processes share 16 as %v", counts)
		}
	}
}

package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// Options say how a process takes part.
type Options struct {
	// Namespace and ID are those of the Lease of the election.
	Namespace, ID string
	// N is the number of shards, from 1 to MostShards.
	N int
	leadership.Timings
	// Record writes an event about the Lease of the election. It may be nil.
	Record func(note string)
	Log    logr.Logger
}

// Member is the part of one process. It is an Owned.
type Member struct {
	options      Options
	name         string // of this process
	set, process *leadership.Election
	leases       leases // writes only while this process may
	mayWrite     func() error
	now          func() time.Time
	seen         *observer
	handler      Handler
	wake         chan struct{}
	// joined is when this process joined the set.
	joined time.Time
	// unanswered are the tokens of shards whose Lease may name this process though the answer to its write says nothing.
	unanswered map[int]leadership.Token

	mu   sync.Mutex
	held map[int]*held
	// quarantined are the shards that nobody takes, as this process saw them last.
	quarantined map[int]bool
	// alive are the processes of the set, as this process saw them last.
	alive []string
	// waitsFor says what this process waits for before it takes any shard; empty once it takes some.
	waitsFor string
	// refused is why this process cannot take part.
	refused error
	// settled is true while this process holds its share.
	settled bool
}

var _ Owned = &Member{}

// leases is what is used of a client.
type leases interface {
	List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// nobody is the handler of a process that does nothing for its shards.
type nobody struct{}

// Gained implements Handler.
func (nobody) Gained(context.Context, int) {}

// Lost implements Handler.
func (nobody) Lost(int) {}

// MembersChanged implements Handler.
func (nobody) MembersChanged() {}

// MismatchError is about processes that were started with different numbers of shards.
type MismatchError struct {
	Lease        string // NAMESPACE/NAME
	Ours, Theirs int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("--shards is %d, but the processes that hold Lease %s have %d shards: use the same number for "+
		"all of them, another "+
		"--leader-election-id for another set, or stop the others first", e.Ours, e.Lease, e.Theirs)
}

// New prepares the part of this process. It sends no request.
func New(cfg *rest.Config, o Options) (*Member, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process: %w", err)
	}
	m := newMember(o, processName(host))
	n := names{o.ID}
	m.process, err = leadership.New(cfg, leadership.Options{Namespace: o.Namespace, Name: n.process(m.name),
		Timings: o.Timings, Self: m.name,
		Labels: map[string]string{n.label(): fmt.Sprint(o.N)}, Log: o.Log})
	if err != nil {
		return nil, err
	}
	m.set, err = leadership.New(cfg, leadership.Options{Namespace: o.Namespace, Name: o.ID,
		Timings: o.Timings, Self: Name(o.N),
		Shared: &leadership.Shared{Others: m.others}, Record: o.Record, Waiting: m.waiting, Renewed: m.renewed, Log: o.Log})
	if err != nil {
		return nil, err
	}
	fenced := m.Fence(rest.AddUserAgent(rest.CopyConfig(cfg), "shards"))
	fenced.Timeout, fenced.QPS = max(o.RenewDeadline/2, time.Second), -1 // a request for each shard is due at once
	client, err := coordinationclient.NewForConfig(fenced)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	m.leases = client.Leases(o.Namespace)
	m.mayWrite = func() error { return errors.Join(m.set.MayWrite(), m.process.MayWrite()) }
	return m, nil
}

func newMember(o Options, name string) *Member {
	return &Member{options: o, name: name, now: time.Now, handler: nobody{},
		wake: make(chan struct{}, 1), held: map[int]*held{},
		unanswered: map[int]leadership.Token{}, waitsFor: "the Lease of the set of shards",
		seen: newObserver(names{o.ID}, name, o.N, o.LeaseDuration)}
}

var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

// processName is a name for this process that a Lease may have, and no other process has, even a later one on this
// machine.
func processName(host string) string {
	host = unfit.ReplaceAllString(strings.ToLower(host), "-")
	return strings.Trim(host[:min(len(host), 63)], "-") + "-" + rand.String(8)
}

// Self is the name of this process.
func (m *Member) Self() string { return m.name }

// Elected is closed once this process belongs to the set.
func (m *Member) Elected() <-chan struct{} { return m.set.Elected() }

// Set is the tenure of the set, and Process that of this process: every write needs both.
func (m *Member) Set() *leadership.Tenure { return m.set.Tenure }

// Process is the tenure of this process.
func (m *Member) Process() *leadership.Tenure { return m.process.Tenure }

// HadOtherLeader reports, once this process belongs to the set, whether another process wrote before.
func (m *Member) HadOtherLeader() bool { return m.set.HadOtherLeader() || m.set.Joined() }

// Fence returns a configuration whose clients write only while this process belongs to the set and renews its own Lease
// in time.
func (m *Member) Fence(cfg *rest.Config) *rest.Config { return m.set.Fence(m.process.Fence(cfg)) }

// FenceEvents is Fence for what a process may write too before it belongs to the set.
func (m *Member) FenceEvents(cfg *rest.Config) *rest.Config {
	return m.set.FenceEvents(m.process.FenceEvents(cfg))
}

// waiting is called when another holds the Lease of the set, which may have died.
func (m *Member) waiting(holder string, lasts time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lease := m.options.Namespace + "/" + m.options.ID
	if n, ok := NumberOf(holder); ok {
		m.waitsFor = fmt.Sprintf(
			"processes with %d shards, which hold Lease %s: it runs out after %s if none of them runs any more",
			n, lease, lasts)
		m.options.Log.Info("waiting: processes with another number of shards hold the Lease", "lease", lease,
			"shards", n, "runsOutAfter", lasts)
		return
	}
	m.waitsFor = fmt.Sprintf("%s, a process without --shards that holds Lease %s", holder, lease)
	m.options.Log.Info("waiting: a process without --shards holds the Lease", "lease", lease, "holder", holder)
}

// renewed is called when another that holds the Lease of the set is alive. One with another number of shards keeps this
// process out.
func (m *Member) renewed(holder string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok := NumberOf(holder); ok {
		m.refused = &MismatchError{Lease: m.options.Namespace + "/" + m.options.ID, Ours: m.options.N, Theirs: n}
		m.rouse()
	}
}

// rouse has the loop look at once.
func (m *Member) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run runs work while this process takes part. Work begins at once, and whatever must wait for a shard waits for it.
// The context of work ends with ctx, or when this process may not take part any more. Its shards are given back once
// work has returned.
func (m *Member) Run(ctx context.Context, work func(context.Context) error) error {
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	defer forgetMetrics()
	err := m.process.Run(ctx, func(ctx context.Context) error {
		return m.set.RunAfter(ctx, m.process.Elected(), func(ctx context.Context) error {
			looping, stop := context.WithCancel(ctx)
			over := make(chan struct{})
			go func() {
				defer close(over)
				m.loop(looping, refuse)
			}()
			err := work(ctx)
			stop()
			<-over
			return err
		})
	})
	if mismatch := (*MismatchError)(nil); errors.As(context.Cause(ctx), &mismatch) {
		return mismatch
	}
	return err
}

// Ready returns why this process does not do its share yet; nil if it does, or waits for a process that is to stop
// first.
func (m *Member) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.refused != nil:
		return m.refused
	case m.waitsFor != "" || m.settled:
		return nil
	}
	return errors.New("this process does not hold its share of the shards yet")
}

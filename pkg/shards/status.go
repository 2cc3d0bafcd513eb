package shards

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// Shard is what the Lease of one shard says.
type Shard struct {
	Number int
	// Holder is the process that it names; empty if none. Alive is true if that one renewed its Lease in time, if the
	// clocks of the two machines agree.
	Holder string
	Alive  bool
	// Since is when it changed hands.
	Since time.Time
	Token int64
	// Loading is true until its objects were loaded and reconciled once. Deaths is how many holders in a row died before
	// that.
	Loading     bool
	Deaths      int
	Quarantined bool
}

// State is what the Leases of a set say.
type State struct {
	// N is the number of shards of the set.
	N int
	// Processes are the names of those that are alive, and how many shards they hold.
	Processes map[string]int
	// Doubts are the other processes that have a Lease, and why it does not show that they are alive.
	Doubts map[string]string
	Shards []Shard
}

// Read reads the Leases of a set.
func Read(ctx context.Context, client Leases, id string, now time.Time) (*State, error) {
	lease, err := client.Get(ctx, id, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	holder := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec).HolderIdentity
	number, ok := NumberOf(holder)
	switch {
	case holder == "":
		return nil, fmt.Errorf("nobody holds Lease %s/%s: no process with --shards is running", lease.Namespace, id)
	case !ok:
		return nil, fmt.Errorf("%s, a process without --shards, holds Lease %s/%s", holder, lease.Namespace, id)
	}
	n := names{id}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: n.label()})
	if err != nil {
		return nil, err
	}
	return n.state(list.Items, number, now), nil
}

// state sorts the Leases of a set.
func (n names) state(list []coordinationv1.Lease, number int, now time.Time) *State {
	s := &State{N: number, Processes: map[string]int{}, Doubts: map[string]string{}}
	there := map[int]*coordinationv1.Lease{}
	for i := range list {
		if k, ok := n.shardOf(list[i].Name); ok {
			there[k] = &list[i]
		} else if name, ok := n.processOf(list[i].Name); ok {
			spec := resourcelock.LeaseSpecToLeaderElectionRecord(&list[i].Spec)
			lasts := time.Duration(spec.LeaseDurationSeconds) * time.Second
			doubt := leadership.Doubt(spec.RenewTime.Time, lasts, now)
			switch {
			case spec.HolderIdentity != name:
			case doubt != "":
				s.Doubts[name] = doubt
			default:
				s.Processes[name] = 0
			}
		}
	}
	for k := range number {
		one := Shard{Number: k}
		if lease := there[k]; lease != nil {
			r := n.read(lease, number)
			one.Holder, one.Since, one.Token, one.Loading, one.Deaths = r.holder, r.changed, int64(r.token), r.loading, r.deaths
			one.Quarantined = r.holder == "" && shard{deaths: r.deaths, group: r.group}.quarantined()
		}
		if _, one.Alive = s.Processes[one.Holder]; one.Alive {
			s.Processes[one.Holder]++
		}
		s.Shards = append(s.Shards, one)
	}
	return s
}

// Leases is what Read and Release use of a client.
type Leases interface {
	leases
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
}

// Release ends the quarantine of a shard. It returns how many processes had died.
func Release(ctx context.Context, client Leases, id string, k int) (int, error) {
	n := names{id}
	for {
		lease, err := client.Get(ctx, n.shard(k), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("shard %d does not exist: give one that corollary shards shows", k)
		}
		if err != nil {
			return 0, err
		}
		deaths := count(lease.Annotations[n.deaths()])
		if deaths == 0 {
			return 0, fmt.Errorf("shard %d is not in quarantine: no process died while it loaded the shard", k)
		}
		delete(lease.Annotations, n.deaths())
		delete(lease.Annotations, n.group())
		if _, err := client.Update(ctx, lease, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return deaths, err
		}
	}
}

package leadership

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Record says who holds a lock, since when, and until when it is good. LeaderTransitions is the token.
type Record = resourcelock.LeaderElectionRecord

// Store keeps the record of a lock where all that want it can reach it. Its errors are those of an API server:
// NotFound, AlreadyExists, Conflict, Forbidden, Unauthorized, Invalid; any other is about a request that may be tried
// again. It is used by one goroutine at a time.
type Store interface {
	// Describe names the lock, as in "Lease apps/main".
	Describe() string
	// Get reads the record.
	Get(ctx context.Context) (*Record, error)
	// Create writes the first record. Update replaces the one that Get, Create or Update last returned or wrote; it fails
	// with Conflict if someone else has written since.
	Create(ctx context.Context, record *Record) error
	Update(ctx context.Context, record *Record) error
	// Watch calls seen with every record from the one that was read last on, until seen returns true. It returns an error
	// that wraps ErrUnwatched if it cannot watch, and nil when the watch ends for any other reason.
	Watch(ctx context.Context, seen func(record *Record) bool) error
	// LeastToken is the least token that a new holder may use, by what Get read last: greater than all before.
	LeastToken() Token
	// LastToken is the greatest token that a record has room for.
	LastToken() Token
}

// ErrUnwatched says that a lock is not watched, so that it must be polled.
var ErrUnwatched = errors.New("it cannot be watched")

// NotFound is the error of a Store without a record.
func NotFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "lock"}, name)
}

// Conflict is the error of a Store whose record someone else has written.
func Conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "lock"}, name, errors.New("somebody else has written it"))
}

// Forbidden is the error of a Store that refuses the request.
func Forbidden(err error) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "lock"}, "", err)
}

// leases is a Store that is a Lease.
type leases struct {
	namespace, name string
	client          coordinationclient.LeaseInterface // with a time limit
	watching        coordinationclient.LeaseInterface // without
	read            *coordinationv1.Lease
	labels          map[string]string // of the Lease, besides others; each write puts them back
}

// NewLease returns a Store that is a Lease of the API server that cfg is for. A request that hangs ends after timeout.
// It sends no request.
func NewLease(cfg *rest.Config, namespace, name string, timeout time.Duration) (Store, error) {
	return newLease(cfg, namespace, name, timeout)
}

func newLease(cfg *rest.Config, namespace, name string, timeout time.Duration) (*leases, error) {
	cfg = rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	watching, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	cfg.Timeout = timeout
	client, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	return newLeases(namespace, name, client, watching), nil
}

func newLeases(namespace, name string, client, watching coordinationclient.LeasesGetter) *leases {
	return &leases{namespace: namespace, name: name, client: client.Leases(namespace),
		watching: watching.Leases(namespace)}
}

// Describe implements Store.
func (s *leases) Describe() string { return "Lease " + s.namespace + "/" + s.name }

// Get implements Store.
func (s *leases) Get(ctx context.Context) (*Record, error) {
	lease, err := s.client.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	s.read = lease
	return resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec), nil
}

// Create implements Store.
func (s *leases) Create(ctx context.Context, record *Record) error {
	lease, err := s.client.Create(ctx,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name,
			Labels: s.labels}, Spec: resourcelock.LeaderElectionRecordToLeaseSpec(record)}, metav1.CreateOptions{})
	if err == nil {
		s.read = lease
	}
	return err
}

// Update implements Store.
func (s *leases) Update(ctx context.Context, record *Record) error {
	if s.read == nil {
		return Conflict(s.name)
	}
	lease := s.read.DeepCopy()
	for key, value := range s.labels {
		metav1.SetMetaDataLabel(&lease.ObjectMeta, key, value)
	}
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(record)
	lease, err := s.client.Update(ctx, lease, metav1.UpdateOptions{})
	if err == nil {
		s.read = lease
	}
	return err
}

// LeastToken implements Store: the transitions of a Lease are counted in it.
func (s *leases) LeastToken() Token { return 0 }

// LastToken implements Store: the API has 32 bits for transitions.
func (s *leases) LastToken() Token { return math.MaxInt32 }

// Watch implements Store.
func (s *leases) Watch(ctx context.Context, seen func(*Record) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := s.watching.Watch(ctx, metav1.ListOptions{ResourceVersion: s.read.ResourceVersion,
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String()})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwatched, err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events.ResultChan():
			lease, ok := event.Object.(*coordinationv1.Lease)
			if !open || !ok || event.Type == watch.Deleted || seen(resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)) {
				return nil
			}
		}
	}
}

// Package locks opens the locks that files of activations name, and asks names in DNS in their place. It does not
// elect: who takes a lock, and for how long, is pkg/activation's affair.
package locks

import (
	"context"
	"time"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// Open returns the lock that a config names. It sends no request.
func Open(f *load.ActivationFile) (leadership.Store, error) {
	switch {
	case f.Etcd != nil:
		return openEtcd(f)
	case f.ZooKeeper != nil:
		return openZooKeeper(f)
	case f.DynamoDB != nil:
		return openDynamoDB(f), nil
	case f.DNS != nil:
		return openDNS(f), nil
	}
	return openLease(f)
}

// OpenName returns what to call the name in DNS that a config has, and how to ask whether it says that this cluster is
// active, and what it says.
func OpenName(f *load.ActivationFile) (name string, ask func(context.Context) (bool, string, error)) {
	d := openDNS(f)
	return d.Describe(), d.ask
}

// RequestTimeout is when a request about the lock is given up: one that hangs shall not cost the lock.
func RequestTimeout(f *load.ActivationFile) time.Duration {
	return max(time.Duration(f.RenewDeadline)/2, time.Second)
}

// Timed is a lock whose service reports its time.
type Timed interface {
	// ServerTime is what the service's clock said in its last answer; false if it reports none.
	ServerTime() (time.Time, bool)
}

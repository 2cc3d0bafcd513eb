package reconcile

import (
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/departures"
)

// others is what is known of objects of others.
type others struct {
	awaited departures.Awaited
	shared  departures.Shared
}

// Awaiting lists the upstreams that wait for an object of others, first the one that has waited longest.
func (o *others) Awaiting(live *drift.Live) []operator.Ref {
	return o.awaited.Upstreams(operator.Ref{Namespace: live.Namespace, Name: live.Name})
}

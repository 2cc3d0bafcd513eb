package engine

import (
	"context"
	"time"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// versionWait bounds the request for the version: nothing is done meanwhile.
const versionWait = 5 * time.Second

// actAfterAnother is for a session that was open while another process may have acted.
func actAfterAnother(ctx context.Context, r *reconcile.Reconciler, cache *informers.Cache) {
	if r.Pipeline.HasRows() { // no API server has them, and each cluster reads them itself
		return
	}
	r.ActAfter("")
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	if namespaces := cache.Namespaces(); len(namespaces) > 0 { // one will do: versions are the kind's, not a namespace's
		current, err := r.Client.Version(ctx, r.UpstreamTarget(operator.Ref{Namespace: namespaces[0]}))
		if err != nil {
			r.Log.Info("reading the resource version of the upstreams failed: each upstream is read before it is written",
				"message", err.Error())
			return
		}
		r.ActAfter(current)
		return
	}
}

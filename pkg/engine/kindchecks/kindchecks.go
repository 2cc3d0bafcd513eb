// Package kindchecks finds out when kinds against which a config was compiled are installed, removed or changed.
package kindchecks

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// ErrChanged ends a session whose config was compiled against kinds that have changed.
var ErrChanged = errors.New("a kind of the config was installed, removed or changed")

// schemaWait is how long kinds are checked after a sign that one has changed, in discovery intervals: the API server
// publishes a schema some time after it validates by it. Each check comes after half the time that has passed, so that
// a change is noticed soon. maxSchemaWait bounds how long further signs wait if the last ones were false.
const (
	schemaWait    = 60
	maxSchemaWait = 5 * time.Minute
)

// Session is what runs a config.
type Session struct {
	File     *load.File
	Pipeline *compile.Pipeline
	Cluster  *discovered.Cluster
	// Version is that of the API server; nil if it is unknown.
	Version  func() *version.Version
	Interval time.Duration // the discovery interval
	// Renew compiles the config again, beside the session, and reports whether that begins; Renewing reports whether it is
	// under way.
	Renew    func() bool
	Renewing func() bool
	// Refused reports whether the config does not compile now.
	Refused func() bool
	// End ends the session.
	End func(why error)
	Log logr.Logger
}

// Checks checks the kinds of a session.
type Checks struct {
	Session
	// requested signals that a kind may have changed or gone.
	requested chan struct{}
}

// New returns the checks of a session.
func New(s Session) *Checks { return &Checks{Session: s, requested: make(chan struct{}, 1)} }

// Request has the kinds checked soon. It does not wait.
func (c *Checks) Request() {
	select {
	case c.requested <- struct{}{}:
	default: // they will be
	}
}

// WatchesCustom reports whether a resource is one of the session's custom kinds.
func (c *Checks) WatchesCustom(gvr schema.GroupVersionResource) bool {
	for _, k := range c.Pipeline.Kinds() {
		if k.GVR == gvr {
			return k.IsCustom()
		}
	}
	return false
}

// Serve compiles the config again, beside the session, once a kind is gone or its schema has changed. Without a sign of
// that it makes no request. It goes on afterwards, since the new session may be withdrawn before it takes over.
func (c *Checks) Serve(live context.Context) {
	wait, last := c.Interval, time.Time{}
	for {
		select {
		case <-live.Done():
			return
		case <-c.requested:
		}
		if time.Since(last) > 2*wait {
			wait = c.Interval
		}
		c.check(live)
		work.Pause(live, wait)
		wait, last = min(2*wait, maxSchemaWait), time.Now()
	}
}

// check checks the kinds several times, until another session is to take over, or live is done.
func (c *Checks) check(live context.Context) {
	for passed, wait := time.Duration(0), c.Interval/4; passed < schemaWait*c.Interval; passed, wait = passed+wait,
		max(wait, (passed+wait)/2) {
		if work.Pause(live, wait); live.Err() != nil {
			return
		}
		switch {
		case c.kindGone(live):
			c.startOver()
			return
		case !c.schemasChanged(c.Pipeline.Kinds()) && !c.requirementsLost():
		case c.Pipeline.OnlyDeletes:
			c.startOver()
			return
		case c.misreads():
			c.End(ErrChanged)
			return
		case c.Renew():
			return
		default:
			c.Request()
		}
	}
}

// Await checks the missing kinds, and compiles the config again once one of them is served, or missing for another
// reason.
func (c *Checks) Await(live context.Context) {
	missing := missingKinds(c.Pipeline)
	if len(missing) == 0 {
		return
	}
	for wait := range Waits(c.Interval) {
		if work.Pause(live, wait); live.Err() != nil {
			return
		}
		if slices.ContainsFunc(missing, c.isFound) {
			c.startOver()
		}
	}
}

// isFound reports whether a missing kind can be compiled against now, or is missing for another reason. It reads what
// compiling reads: a kind that is served and whose schema cannot be read is still missing.
func (c *Checks) isFound(k kinds.Kind) bool {
	c.Cluster.Invalidate(k.GVK)
	_, err := c.Cluster.Kind(k.GVK)
	now := whyMissing(err)
	return now != notKnown && now != whyMissing(k.Missing)
}

// startOver compiles the config again: beside this session, or after its end if it does not work yet, or a changed
// config waits for something.
func (c *Checks) startOver() {
	for _, k := range c.Pipeline.Kinds() {
		c.Cluster.Invalidate(k.GVK)
	}
	if c.Renew() {
		c.Log.Info("a kind was installed or removed: compiling the config again")
	} else if !c.Renewing() {
		c.End(ErrChanged)
	}
}

// missingKinds lists the kinds without which a pipeline was compiled.
func missingKinds(p *compile.Pipeline) []kinds.Kind {
	return slices.DeleteFunc(p.Kinds(), func(k kinds.Kind) bool { return k.Missing == nil })
}

// DescribeMissing says which kinds are missing; empty for none.
func DescribeMissing(p *compile.Pipeline) string {
	var texts []string
	for _, k := range missingKinds(p) {
		texts = append(texts, k.Missing.Error())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "; ")
}

// whyMissing distinguishes the reasons that matter to what waits for a kind: no object of it exists, it is served in
// another version, or the API server could not be asked.
func whyMissing(err error) string {
	switch {
	case err == nil:
		return ""
	case kinds.IsNotDefined(err):
		return "gone"
	case errors.Is(err, kinds.ErrUnknown):
		return err.Error()
	}
	return notKnown
}

const notKnown = "not known"

// kindGone reports whether the API server no longer serves a kind. That of the upstream is noticed by its watch.
func (c *Checks) kindGone(live context.Context) bool {
	return slices.ContainsFunc(c.Pipeline.Kinds(), func(k kinds.Kind) bool {
		if k.Missing != nil || k.GVK == c.Pipeline.Upstream.GVK {
			return false
		}
		_, err := c.Cluster.Served(live, k.GVK)
		return errors.Is(err, kinds.ErrUnknown)
	})
}

// misreads reports whether a kind that the config reads has changed so that the config does not compile. Then even the
// last good config would see values that the API server has dropped as removed by a user, and delete what follows from
// them.
func (c *Checks) misreads() bool {
	if !c.schemasChanged(c.Pipeline.KindsRead()) {
		return false
	}
	return c.Refused()
}

// schemasChanged reports whether one of the custom kinds differs from the one that the pipeline was compiled against.
// One that the API server does not describe now has not changed.
func (c *Checks) schemasChanged(list []kinds.Kind) bool {
	for _, k := range list {
		if !k.IsCustom() || k.Missing != nil {
			continue
		}
		c.Cluster.Invalidate(k.GVK)
		now, err := c.Cluster.Kind(k.GVK)
		if err != nil || now.Schema == nil {
			continue
		}
		if now.GVR != k.GVR || now.HasStatus != k.HasStatus || now.Namespaced != k.Namespaced ||
			!reflect.DeepEqual(now.Schema, k.Schema) {
			c.Log.Info("the definition of a kind has changed: compiling the config again", "kind", k.GVK.GroupKind().String())
			return true
		}
	}
	return false
}

// requirementsLost reports whether the API server lacks a version that the config requires, and had it when the config
// was compiled. The compiled config goes on while it is compiled again, and refused.
func (c *Checks) requirementsLost() bool {
	if c.Renewing() {
		return false
	}
	list, err := compile.Requirements(c.File, compile.Options{Kinds: c.Cluster, Version: c.Version()})
	return err == nil && slices.ContainsFunc(list, func(r compile.Requirement) bool { return r.Unmet != nil })
}

// Waits are the endless pauses between requests for kinds: they grow from an interval to five times that.
func Waits(interval time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		const longest = 5
		for wait := interval; yield(wait); wait = min(2*wait, longest*interval) {
		}
	}
}

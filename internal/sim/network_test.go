package sim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Faults of a request.
const (
	faultLost      = "is lost"
	faultFails     = "fails"
	faultThrottled = "is throttled"
	faultAnswer    = "is carried out, and the answer is lost"
	faultBefore    = "is lost with the process"
	faultAfter     = "is carried out, and the process is killed"
)

// faultKinds are the faults that each happen to one of oneOf requests. Lists and discovery cannot be ambiguous.
var faultKinds = []string{faultLost, faultFails, faultThrottled, faultAnswer, faultAnswer, faultBefore, faultAfter, faultAfter}

const oneOf = 12 // for each fault

// chooseFault returns the fault of a request, or "".
func (w *world) chooseFault(what string, n uint64) string {
	if w.noFaults {
		return ""
	}
	if w.Schedule.Faults != nil {
		i := slices.IndexFunc(*w.Schedule.Faults, func(f Fault) bool { return f.Request == what && f.N == n })
		if i < 0 {
			return ""
		}
		return (*w.Schedule.Faults)[i].Fate
	}
	if i := w.source("fate", what, n).IntN(len(faultKinds) * oneOf); i < len(faultKinds) {
		return faultKinds[i]
	}
	return ""
}

// about reports whether a request is for an object; aside means that it is for leader election or an event.
func about(request *http.Request) (object, aside bool) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) > 1 || request.Method != http.MethodGet, parts[0] == "leases" || parts[0] == "events"
}

// RoundTrip sends a request through a network with delays and losses.
func (p *process) RoundTrip(request *http.Request) (*http.Response, error) {
	w := p.world
	what := p.name + " " + request.Method + " " + request.URL.Path
	r, n := w.chance(what)
	if err := pause(request.Context(), milliseconds(r.IntN(40))); err != nil {
		return nil, err
	}
	watches := request.URL.Query().Get("watch") != ""
	object, aside := about(request)
	w.mu.Lock()
	fault := w.chooseFault(what, n)
	if watches || aside || !object && fault != faultFails && fault != faultBefore {
		fault = ""
	}
	if fault != "" {
		w.faults = append(w.faults, Fault{what, n, fault})
	}
	if object && !aside {
		w.requests = append(w.requests, what)
	}
	w.mu.Unlock()
	if response, err := p.deliverRequest(request, what, fault); response != nil || err != nil {
		return response, err
	}
	sent, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	p.checkLeader(request, what)
	p.checkRemoval(request, what)
	p.checkTier(request, what)
	p.checkOrder(request, what)
	had := w.passwords(request)
	response, err := w.cluster.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if request.Method != http.MethodGet {
		w.checkPasswords(what, had, w.passwords(request))
		w.notifyChange()
		w.note(request, sent, response.StatusCode)
	}
	if object && !aside {
		w.logf("%s %s: %d", what, shorten(sent), response.StatusCode)
	}
	return p.deliverResponse(request, response, what, fault, watches)
}

// deliverRequest applies the faults before a request arrives. It returns nothing if the request arrives.
func (p *process) deliverRequest(request *http.Request, what, fault string) (*http.Response, error) {
	w := p.world
	if cut := p.isCut(); cut != nil {
		select {
		case <-cut:
		case <-request.Context().Done():
		}
		return nil, syscall.ECONNRESET
	}
	if p.isDead() {
		return nil, syscall.ECONNRESET
	}
	switch fault {
	case faultLost, faultBefore, faultFails, faultThrottled:
		w.logf("%s %s", what, fault)
	}
	switch fault {
	case faultBefore:
		p.kill()
		return nil, syscall.ECONNRESET
	case faultLost:
		return nil, syscall.ECONNRESET
	case faultFails:
		return failure(request, http.StatusInternalServerError, "InternalError"), nil
	case faultThrottled:
		return failure(request, http.StatusTooManyRequests, "TooManyRequests"), nil
	}
	return nil, nil
}

// deliverResponse applies the faults of a response.
func (p *process) deliverResponse(request *http.Request, response *http.Response, what, fault string,
	watches bool,
) (*http.Response, error) {
	w := p.world
	r, _ := w.chance("answer to " + what)
	if fault == faultAfter {
		w.logf("%s %s", what, fault)
		p.kill()
	}
	err := pause(request.Context(), milliseconds(r.IntN(40)))
	if err == nil && fault == faultAnswer {
		w.logf("%s %s", what, fault)
	}
	if err != nil || fault == faultAnswer || p.isCut() != nil || !p.keepWatch(response, watches) {
		_ = response.Body.Close() // the response is discarded
		return nil, syscall.ECONNRESET
	}
	return response, nil
}

// keepWatch records a watch, which ends with the process. It returns false if the process has ended.
func (p *process) keepWatch(response *http.Response, watches bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if watches && !p.dead {
		b := &body{response.Body, p.replica}
		p.open[b] = struct{}{}
		response.Body = b
	}
	return !p.dead
}

// checkLeader checks that no process writes objects while another one holds the Lease.
func (p *process) checkLeader(request *http.Request, what string) {
	w := p.world
	_, aside := about(request)
	if len(w.replicas) == 1 || aside || request.Method == http.MethodGet || request.URL.Query().Get("dryRun") != "" {
		return
	}
	lease, err := w.users.Resource(leases).Namespace("system").Get(request.Context(), "sim", getOptions)
	if err != nil {
		w.problem("%s, and there is no Lease: %v", what, err)
		return
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if !strings.Contains(holder, "_"+p.name+"_") {
		w.problem("%s, and the Lease is that of %q", what, holder)
	}
}

// checkRemoval checks that an upstream always has its object: a superseded one is deleted only after its successor
// exists. This cannot be checked if others delete objects, too, or one is recreated, nor of one of several whose item
// has gone: it does not wait for another one whose name was taken.
func (p *process) checkRemoval(request *http.Request, what string) {
	w := p.world
	const place = "/api/v1/namespaces/"
	if request.Method != http.MethodDelete || w.Setup.Example != "" || w.Setup.Recreate || !strings.HasPrefix(request.URL.Path, place) ||
		slices.ContainsFunc(w.Steps, func(s Step) bool { return slices.Contains(removals, s.Do) || w.Setup.Several && s.Do == "squat" }) {
		return
	}
	ctx := request.Context()
	c := w.pipelines()[0].Pipeline
	var uid string
	left := map[string]int{}
	for _, u := range w.list(ctx, c.Downstreams[0].GVK()) {
		if owners := ownersOf(c, u); len(owners) == 0 || isBefore(u) {
			continue
		} else if left[owners[0]]++; request.URL.Path == place+u.GetNamespace()+"/"+strings.ToLower(u.GetKind())+"s/"+u.GetName() {
			uid = owners[0]
		}
	}
	for _, u := range w.list(ctx, c.Upstream.GVK) {
		if string(u.GetUID()) == uid && u.GetDeletionTimestamp() == nil && left[uid] < 2 {
			w.problem("%s, and %s has no other object yet", what, key(u))
		}
	}
}

// checkTier checks that a Secret with a value is not deleted as long as the one that it belongs to stays.
func (p *process) checkTier(request *http.Request, what string) {
	w := p.world
	if w.Setup.Example != "tiers" || request.Method != http.MethodDelete {
		return
	}
	for _, u := range w.cluster.Objects(schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "stores"}) {
		if u.GetDeletionTimestamp() == nil && request.URL.Path == "/api/v1/namespaces/default/secrets/"+u.GetName() {
			w.problem("%s, and %s stays", what, key(u))
		}
	}
}

// note counts creations that must happen only once, and checks what a status says.
func (w *world) note(request *http.Request, sent []byte, code int) {
	if w.Setup.Example == "spaces" && strings.Contains(string(sent), "somebody else has to create it") {
		w.problem("the status says that an object of others does not exist, which nobody has deleted: %s", shorten(sent))
	}
	if !strings.HasSuffix(request.URL.Path, "-before") || code != http.StatusCreated || request.URL.Query().Get("dryRun") != "" {
		return
	}
	var object struct{ Data map[string]string }
	if err := json.Unmarshal(sent, &object); err != nil {
		return // a patch of something else
	}
	w.mu.Lock()
	w.beforeCreations[object.Data["for"]]++
	twice := w.beforeCreations[object.Data["for"]] > 1
	w.mu.Unlock()
	if twice {
		w.problem("the object of deletion.before is made twice for the upstream %s", object.Data["for"])
	}
}

// failure returns the response of an API server that refuses a request.
func failure(request *http.Request, code int, reason string) *http.Response {
	text, err := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
		"message": "by chance"})
	if err != nil {
		panic(err)
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))),
		ContentLength: int64(len(text)), Request: request,
	}
}

package testkit

import (
	"net/url"
	"strings"
	"testing"
)

// Audit returns the completed requests since the control plane started, in order; with conditions, only those that
// match all of them (Agent, for example). It needs WithAudit or bubble.Listen. Unlike a Counter it has the requests of
// other processes, but it does not distinguish an apply from another patch.
func Audit(t testing.TB, conditions ...func(Request) bool) []Request {
	t.Helper()
	if c := served(t); c != nil {
		if c.audit == nil {
			t.Fatal("the API server in memory is not audited: use bubble.Listen")
		}
		return c.audit.Requests(append(conditions, func(r Request) bool { return r.Code != 0 })...)
	}
	events, err := plane().ReadAudit()
	if err != nil {
		t.Fatal(err)
	}
	var requests []Request
	for _, event := range events {
		request := Request{Verb: strings.ToUpper(event.Verb), UserAgent: event.UserAgent, User: event.User.Username,
			Sender: event.User.Username, Received: event.Received}
		if event.ImpersonatedUser != nil {
			request.User = event.ImpersonatedUser.Username
		}
		request.Path, request.Query, _ = strings.Cut(event.RequestURI, "?")
		if query, err := url.ParseQuery(request.Query); err == nil {
			request.DryRun = query.Get("dryRun") == "All"
		}
		if ref := event.ObjectRef; ref != nil {
			request.Group, request.Namespace, request.Name = ref.APIGroup, ref.Namespace, ref.Name
			request.Resource = ref.Resource
			if ref.Subresource != "" {
				request.Resource += "/" + ref.Subresource
			}
		}
		if event.ResponseStatus != nil {
			request.Code = event.ResponseStatus.Code
		}
		if all(conditions, request) {
			requests = append(requests, request)
		}
	}
	return requests
}

// By is a condition for requests of a user, impersonated or not.
func By(user string) func(Request) bool {
	return func(r Request) bool { return r.User == user }
}

// Agent is a condition for requests whose user agent starts with the prefix.
func Agent(prefix string) func(Request) bool {
	return func(r Request) bool { return strings.HasPrefix(r.UserAgent, prefix) }
}

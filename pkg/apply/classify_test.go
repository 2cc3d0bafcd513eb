package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/redact"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	web         = Target{GVR: deployments, Namespace: "apps", Name: "web"}
)

// answer returns a refusal of the API server as client-go does.
func answer(code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: details}}
}

func lost(err error) error {
	return &url.Error{Op: "Patch", URL: "https://127.0.0.1:6443/apis", Err: err}
}

func TestClassify(t *testing.T) {
	forbidden := `deployments.apps "web" is forbidden: `
	cases := []struct {
		reason  string
		err     error
		want    string
		message string // what the message contains
		after   time.Duration
	}{
		{reason: "no error", want: ""},
		{reason: "a right is missing: which one is said in RBAC's terms",
			err: answer(403, metav1.StatusReasonForbidden,
				forbidden+`User "bob" cannot patch resource "deployments" in API group "apps" in the namespace "apps"`,
				&metav1.StatusDetails{Name: "web", Group: "apps", Kind: "deployments"}),
			want: ReasonForbidden, message: "needs: patch deployments.apps in namespace apps"},
		{reason: "an older API server gives no reason where an apply would create and the right to create is missing",
			err:  answer(403, metav1.StatusReasonForbidden, forbidden, &metav1.StatusDetails{Name: "web", Group: "apps", Kind: "deployments"}),
			want: ReasonForbidden, message: "needs: patch deployments.apps in namespace apps"},
		{reason: "and only the authorizer's problem where it had one",
			err:  answer(403, metav1.StatusReasonForbidden, forbidden+`RBAC: role.rbac.authorization.k8s.io "gone" not found`, nil),
			want: ReasonForbidden, message: "needs: patch deployments.apps in namespace apps"},
		{reason: "a quota answers with the same code and reason, but no right is missing",
			err: answer(403, metav1.StatusReasonForbidden,
				forbidden+`exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=1, limited: count/deployments.apps=1`,
				nil),
			want: ReasonDenied, message: "exceeded quota: q"},
		{reason: "a webhook that denies with a bare code",
			err:  answer(403, "", `admission webhook "w.example.com" denied the request: no`, nil),
			want: ReasonDenied, message: "denied the request: no"},
		{reason: "a terminating namespace is a 403 with a cause",
			err: answer(403, metav1.StatusReasonForbidden, forbidden+"unable to create new content in namespace apps because it is being terminated",
				&metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}}),
			want: ReasonNamespaceTerminating, message: "it is being terminated"},
		{reason: "a policy that gives no reason says that the object is invalid, and names no field",
			err: answer(422, metav1.StatusReasonInvalid, forbidden+`ValidatingAdmissionPolicy 'p.example.com' with binding 'b' denied request: no`,
				&metav1.StatusDetails{Causes: []metav1.StatusCause{{
					Message: `ValidatingAdmissionPolicy 'p.example.com' with binding 'b' denied request: no`}}}),
			want: ReasonDenied, message: "denied request: no"},
		{reason: "a policy whose binding cannot be told",
			err:  answer(422, metav1.StatusReasonInvalid, forbidden+`ValidatingAdmissionPolicy 'p' denied request: failed to configure policy`, nil),
			want: ReasonDenied, message: "failed to configure policy"},
		{reason: "a policy may choose other reasons", err: answer(401, metav1.StatusReasonUnauthorized,
			forbidden+`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, nil), want: ReasonDenied, message: "denied request: no"},
		{reason: "such as that of a limit", err: answer(413, metav1.StatusReasonRequestEntityTooLarge,
			forbidden+`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, nil), want: ReasonDenied, message: "denied request: no"},
		{reason: "a webhook that says no more than that", err: answer(400, "", `admission webhook "w.example.com" denied the request: no`, nil),
			want: ReasonDenied, message: "denied the request: no"},
		{reason: "a webhook that names a field has looked at the object's values",
			err: answer(422, metav1.StatusReasonInvalid, `admission webhook "w.example.com" denied the request: x`,
				&metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.a", Message: "bad"}}}),
			want: ReasonRejected, message: "spec.a: bad"},
		{reason: "a webhook that asks to come back", err: answer(429, metav1.StatusReasonTooManyRequests,
			`admission webhook "w.example.com" denied the request: later`, nil), want: ReasonThrottled},
		{reason: "a webhook that broke down", err: answer(500, "", `admission webhook "w.example.com" denied the request: oops`, nil),
			want: ReasonInternalError},
		{reason: "a bad value that quotes a policy", err: answer(422, metav1.StatusReasonInvalid,
			`Deployment.apps "web" is invalid: spec.a: Invalid value: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request": no`, nil),
			want: ReasonRejected},
		{reason: "a webhook that misses another object", err: answer(404, metav1.StatusReasonNotFound,
			`admission webhook "w.example.com" denied the request: no such team`, nil), want: ReasonDenied},
		{reason: "a write to the wrong place", err: answer(405, metav1.StatusReasonMethodNotAllowed,
			`admission webhook "w.example.com" denied the request: no`, nil), want: ReasonDenied},
		{reason: "credentials", err: apierrors.NewUnauthorized("Unauthorized"), want: ReasonUnauthorized, message: "Unauthorized"},
		{reason: "a missing namespace is not a missing object",
			err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "apps"), want: ReasonNamespaceNotFound,
			message: `namespaces "apps" not found`},
		{reason: "a missing object", err: apierrors.NewNotFound(deployments.GroupResource(), "web"), want: ReasonNotFound,
			message: `deployments.apps "web" not found`},
		{reason: "a missing kind: client-go makes this of a 404 that is no status",
			err:  apierrors.NewGenericServerResponse(404, "PATCH", schema.GroupResource{}, "", "404 page not found", 0, true),
			want: ReasonKindNotServed, message: "does not serve deployments.apps in version v1; is its CustomResourceDefinition installed"},
		{reason: "a CRD that is being removed takes no new objects",
			err:  answer(405, metav1.StatusReasonMethodNotAllowed, "create not allowed while custom resource definition is terminating", nil),
			want: ReasonKindNotServed, message: "while custom resource definition is terminating"},
		{reason: "a bad value: each cause once, without the object's name again",
			err: answer(422, metav1.StatusReasonInvalid, `Deployment.apps "web" is invalid: …`, &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Field: "spec.replicas", Message: "Invalid value: -1: must be greater than or equal to 0"},
				{Field: "spec.replicas", Message: "Invalid value: -1: must be greater than or equal to 0"}}}),
			want:    ReasonRejected,
			message: "applying deployments.apps apps/web: spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{
			reason: "an API server that knows the verb impersonate alone", want: ReasonForbidden, message: "cannot impersonate resource",
			err: answer(403, metav1.StatusReasonForbidden,
				`serviceaccounts "app" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "team-a"`, &metav1.StatusDetails{Name: "app", Kind: "serviceaccounts"}),
		},
		{reason: "a body that the API server cannot read", err: apierrors.NewBadRequest("strict decoding error: unknown field"),
			want: ReasonRejected, message: "unknown field"},
		{reason: "an unknown field comes as a 500 without a reason",
			err: answer(500, "", `failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.nope: field not declared in schema`,
				nil),
			want: ReasonSchemaMismatch, message: "applying deployments.apps apps/web: .spec.nope: field not declared in schema"},
		{reason: "several of them, one with the value as Go prints it",
			err: answer(500, "",
				"failed to create typed patch object (/web; apps/v1, Kind=Deployment): errors:\n  .a: duplicate entries for key [name=\"A\"]\n  .b: "+
					"expected string, got &value.valueUnstructured{Value:5}", nil),
			want: ReasonSchemaMismatch, message: `errors: .a: duplicate entries for key [name="A"] .b: expected string`},
		{reason: "any other 500 is the server's own", err: apierrors.NewInternalError(errors.New("failed calling webhook")),
			want: ReasonInternalError, message: "failed calling webhook"},
		{reason: "a 500 without a reason and with other prose", err: answer(500, "", "boom", nil), want: ReasonInternalError, message: "boom"},
		{reason: "the store's limit comes as a 500 without a reason", err: answer(500, "", "etcdserver: request is too large", nil),
			want: ReasonTooLarge},
		{reason: "so does that of a request to the store",
			err:  answer(500, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2402241 vs. 2097152)", nil),
			want: ReasonTooLarge},
		{reason: "the API server's limit", err: apierrors.NewRequestEntityTooLargeError("limit is 3145728"), want: ReasonTooLarge,
			message: "limit is 3145728"},
		{reason: "throttled, and told for how long", err: apierrors.NewTooManyRequests("slow down", 7), want: ReasonThrottled,
			message: "slow down", after: 7 * time.Second},
		{reason: "a 429 from something in between", err: answer(429, "", "", nil), want: ReasonThrottled},
		{reason: "an API server that is starting", err: apierrors.NewServiceUnavailable("starting"), want: ReasonUnavailable},
		{reason: "a timeout that asks to come back", err: apierrors.NewServerTimeout(deployments.GroupResource(), "patch", 2),
			want: ReasonUnavailable, after: 2 * time.Second},
		{reason: "a load balancer without a backend", err: answer(502, "", "bad gateway", nil), want: ReasonUnavailable},
		{reason: "a write that came in between", err: apierrors.NewConflict(deployments.GroupResource(), "web", errors.New("modified")),
			want: ReasonChanged},
		{reason: "a name that is taken", err: apierrors.NewAlreadyExists(deployments.GroupResource(), "web"), want: ReasonAlreadyExists},
		{reason: "connection refused", err: lost(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
			want: ReasonUnavailable},
		{reason: "a connection that ends in the middle", err: lost(io.ErrUnexpectedEOF), want: ReasonUnavailable},
		{reason: "out of time", err: lost(context.DeadlineExceeded), want: ReasonUnavailable},
		{reason: "shutting down is not an outage", err: lost(context.Canceled), want: ReasonCanceled},
		{reason: "a code that nobody has heard of", err: answer(418, "", "teapot", nil), want: ReasonUnknown, message: "teapot"},
		{reason: "anything else", err: errors.New("what?"), want: ReasonUnknown, message: "what?"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			err := tc.err
			if err != nil {
				o := op{verb: "apply", doing: "applying", needs: "patch"}
				err = fmt.Errorf("syncing deployment: %w", &Error{Verb: o.verb, Target: web, Err: err, op: o})
			}
			got := Classify(err)
			if got.Reason != tc.want || got.RetryAfter != tc.after {
				t.Errorf("classified %q after %v, want %q after %v", got.Reason, got.RetryAfter, tc.want, tc.after)
			}
			if !strings.Contains(got.Message, tc.message) {
				t.Errorf("the message is %q, want it to say %q", got.Message, tc.message)
			}
			if bare := Classify(tc.err); bare.Reason != tc.want {
				t.Errorf("without an *Error around it classified %q, want %q", bare.Reason, tc.want)
			}
		})
	}
}

func TestClassifyMeaning(t *testing.T) {
	conflict := apierrors.NewConflict(deployments.GroupResource(), "web", errors.New("modified"))
	cases := []struct {
		reason  string
		meaning error
		want    string
	}{
		{"what the caller found out counts more than the code", ErrExists, ReasonAlreadyExists},
		{"gone", ErrGone, ReasonNotFound},
		{"replaced", ErrReplaced, ReasonReplaced},
		{"changed", ErrConflict, ReasonChanged},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			err := &Error{Verb: "apply", Target: web, Err: conflict, Meaning: tc.meaning, op: op{doing: "applying"}}
			got := Classify(err)
			if got.Reason != tc.want || got.Message != "applying deployments.apps apps/web: "+tc.meaning.Error() {
				t.Errorf("classified %+v, want %s", got, tc.want)
			}
			if !errors.Is(err, tc.meaning) || !apierrors.IsConflict(err) {
				t.Errorf("%v hides its meaning or the API server's answer", err)
			}
		})
	}
}

func TestNotFoundOfNamespaceItself(t *testing.T) {
	ns := Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "apps"}
	err := &Error{Target: ns, Err: apierrors.NewNotFound(ns.GVR.GroupResource(), "apps")}
	if got := Classify(err).Reason; got != ReasonNotFound {
		t.Errorf("a missing namespace that was itself the object is %s, want %s", got, ReasonNotFound)
	}
	if !objectNotFound(err.Err, ns) {
		t.Error("a missing namespace that was itself the object is not seen as the object")
	}
}

func TestAbout(t *testing.T) {
	cases := []struct {
		reason string
		err    error
		want   bool
	}{
		{"the object", apierrors.NewNotFound(deployments.GroupResource(), "web"), true},
		{"the object, by its kind", answer(409, metav1.StatusReasonConflict, "", &metav1.StatusDetails{Kind: "Deployment", Group: "apps",
			Name: "web"}), true},
		{"another object", apierrors.NewConflict(deployments.GroupResource(), "api", errors.New("modified")), false},
		{"its namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		{"a quota that others count against, too", apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "web",
			errors.New("modified")), false},
		{"an answer that names nothing", answer(404, metav1.StatusReasonNotFound, "", nil), true},
		{"no answer", io.EOF, false},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			if got := isAbout(tc.err, web); got != tc.want {
				t.Errorf("about gave %v for %v", got, tc.err)
			}
		})
	}
	if objectNotFound(answer(404, metav1.StatusReasonNotFound, `admission webhook "w.example.com" denied the request: no such team`, nil), web) {
		t.Error("what a webhook misses is taken for the object")
	}
	if objectNotFound(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "apps"), web) {
		t.Error("a missing namespace is taken for the object")
	}
}

func TestShorten(t *testing.T) {
	cases := []struct {
		reason string
		in     string
		limit  int
		want   string
	}{
		{"short texts stay", "spec: bad", 20, "spec: bad"},
		{"lines become one", "a:\n\tb\n", 20, "a: b"},
		{"the end says what is wrong, so the middle goes", "spec.template: Invalid value: {much}: field is immutable", 40,
			"spec.template … uch}: field is immutable"},
		{"characters are not split", strings.Repeat("é", 40), 10, "ééé … éééé"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			got := shorten(tc.in, tc.limit)
			if got != tc.want {
				t.Errorf("shorten gave %q, want %q", got, tc.want)
			}
			if n := len([]rune(got)); n > tc.limit {
				t.Errorf("%q has %d characters, over %d", got, n, tc.limit)
			}
		})
	}
}

func TestMessagesStayShort(t *testing.T) {
	var causes []metav1.StatusCause
	for i := range 50 {
		causes = append(causes, metav1.StatusCause{Field: fmt.Sprintf("spec.f%d", i), Message: strings.Repeat("x", 100000) + ": immutable"})
	}
	err := answer(422, metav1.StatusReasonInvalid, strings.Repeat("y", 1<<20), &metav1.StatusDetails{Causes: causes})
	got := Classify(&Error{Target: web, Err: err, op: op{doing: "applying"}}).Message
	if len([]rune(got)) > 1000 || !strings.HasSuffix(got, "and 47 more") {
		t.Errorf("a message of %d characters, want at most 1000 that end in what was left out: %s", len(got), got)
	}
}

// TestMessagesHaveOneOrder: the message of a refusal does not depend on the order of the causes, which is random because the
// API server iterates over maps.
func TestMessagesHaveOneOrder(t *testing.T) {
	var causes []metav1.StatusCause
	for _, key := range []string{"..", "/", "a b", "c d", "e f"} {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "data[" + key + "]", Message: "no key"})
	}
	lines := []string{"  .a: expected string, got &value.valueUnstructured{Value:5}", "  .b: field not declared in schema", "  .c: no"}
	port := 0
	cases := []struct {
		reason   string
		shuffled func() error
	}{
		{"causes of a validation", func() error {
			some := slices.Clone(causes)
			rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			return answer(422, metav1.StatusReasonInvalid, `ConfigMap "web" is invalid`, &metav1.StatusDetails{Causes: some})
		}},
		{"what does not fit a schema", func() error {
			some := slices.Clone(lines)
			rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			return answer(500, "", "failed to create typed patch object (/web; apps/v1, Kind=Deployment): errors:\n"+strings.Join(some, "\n"), nil)
		}},
		{"what cannot be sent", func() error {
			_, err := encode(map[string]any{"data": map[string]any{"a": "\xff", "b": "\xff", "\xff": "", "d": math.NaN()}})
			return err
		}},
		{"the port of this end of a connection", func() error {
			port++
			return lost(fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:6443: read: connection reset by peer", 40000+port))
		}},
		{"that of the API server's connection to a webhook", func() error {
			port++
			return apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "w": write tcp [::1]:%d->[::1]:443: write: broken pipe`, 40000+port))
		}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			seen := map[string]bool{}
			for range 100 {
				err := &Error{Target: web, Err: tc.shuffled(), op: op{doing: "applying"}}
				seen[Classify(err).Message+"\n"+ClassifyShown(err, redact.Words{"data": true}).Message] = true
			}
			if len(seen) != 1 {
				t.Errorf("one refusal has %d messages: %q", len(seen), slices.Sorted(maps.Keys(seen)))
			}
		})
	}
}

// TestReasonsAreListed checks that Reasons has every constant in the source.
func TestReasonsAreListed(t *testing.T) {
	src, err := os.ReadFile("reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^\tReason\w+ = "(\w+)"`).FindAllStringSubmatch(string(src), -1) {
		declared = append(declared, m[1])
	}
	slices.Sort(declared)
	if got := Reasons(); !slices.Equal(got, declared) {
		t.Errorf("Reasons gives %v, declared are %v", got, declared)
	}
}

func TestCode(t *testing.T) {
	for err, want := range map[error]int{nil: http.StatusOK, apierrors.NewUnauthorized("x"): 401, io.EOF: 0} {
		if got := code(err); got != want {
			t.Errorf("the code of %v is %d, want %d", err, got, want)
		}
	}
}

package apply

import (
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// Only this file parses texts of the API server, for the few responses that have no other information. Each is tested
// on a real API server. If a text changes, the reason becomes vaguer, and a status with a value that is too large or
// fits no schema is not written.

// reasonless are prefixes of messages of a 500 without reason, details and causes, although the document is invalid.
// The first three are of server-side apply: the document does not fit the schema, or the Go type. The last two are of
// the store.
var reasonless = []struct{ prefix, means string }{
	{"failed to create typed patch object (", ReasonSchemaMismatch},
	{"failed to convert patch object (", ReasonSchemaMismatch},
	{"failed to convert new object (", ReasonSchemaMismatch},
	{"etcdserver: request is too large", ReasonTooLarge},
	{"rpc error: code = ResourceExhausted desc = trying to send message larger than max", ReasonTooLarge},
}

func reasonProse(message string) string {
	for _, p := range reasonless {
		if strings.HasPrefix(message, p.prefix) {
			return p.means
		}
	}
	return ReasonInternalError
}

// lacksRight reports whether a 403 is from the authorizer. Admission responds with the same code, reason and details if
// a quota, a policy or a webhook refuses the object; a hint to grant a right would be wrong then.
func lacksRight(message string) bool {
	return authorizer.MatchString(message)
}

// The second form is used by API servers before 1.31 if an apply would create: they return only the authorizer's
// reason, which is empty in RBAC unless a role is invalid.
var authorizer = regexp.MustCompile(`User ".*" cannot [a-z:-]+ (resource|path) "| is forbidden: (RBAC: .*)?$`)

// impersonator matches a 403 for a request that may not impersonate. The verb is impersonate, or begins with it in API
// servers with rights to impersonate for some requests only.
var impersonator = regexp.MustCompile(`User ".*" cannot impersonate[a-z:-]* resource "`)

// refusesDryRuns reports whether a 400 is for a webhook that declares side effects.
func refusesDryRuns(message string) bool {
	return strings.HasSuffix(message, "does not support dry run")
}

// applyPrefix matches the start of apply's errors, which repeats the object.
var applyPrefix = regexp.MustCompile(`^failed to (create|convert) [a-z ]+ \([^)]*\)( to proper version)?: `)

// goValue matches the invalid value as printed by Go. It is removed: it does not help, and may be a value of a Secret.
var goValue = regexp.MustCompile(`(?m), got &.*$`)

// localPort matches the local end of a connection, which differs each time.
var localPort = regexp.MustCompile(`\S+:\d+->`)

// plain removes internals of the API server from a message, and what may differ in two responses to the same request.
func plain(message string) string {
	message = applyPrefix.ReplaceAllString(message, "")
	message = goValue.ReplaceAllString(message, "")
	if errs, several := strings.CutPrefix(message, "errors:\n"); several {
		lines := strings.Split(errs, "\n")
		slices.Sort(lines)
		message = "errors:\n" + strings.Join(lines, "\n")
	}
	return localPort.ReplaceAllString(message, "")
}

// denials match who refused an object in admission: a policy and its binding, or a webhook. They come before any text
// of theirs.
var denials = []*regexp.Regexp{
	regexp.MustCompile(`^[a-z0-9.-]+ "[^"]*" is forbidden: (ValidatingAdmissionPolicy '[a-z0-9.-]+'( with binding '[a-z0-9.-]+')? denied request)`),
	regexp.MustCompile(`^(admission webhook "[a-z0-9.-]+" denied the request)`),
}

// byAdmission reports whether a response is from a policy or a webhook. The API server adds that before their own text.
func byAdmission(message string) bool {
	return slices.ContainsFunc(denials, func(by *regexp.Regexp) bool { return by.MatchString(message) })
}

// refusedField matches the field in an error of server-side apply, after its prefix is removed.
var refusedField = regexp.MustCompile(`^(\.[^\s:]+): `)

// shownProse returns the part of a message that quotes no value: who refuses the object, or the field that does not fit
// the schema.
func shownProse(message string, words redact.Words) string {
	for _, by := range denials {
		if m := by.FindStringSubmatch(message); m != nil {
			return m[1]
		}
	}
	fits := applyPrefix.ReplaceAllString(message, "")
	if m := refusedField.FindStringSubmatch(fits); m != nil && fits != message {
		return words.Path(m[1]) + ": does not fit the schema"
	}
	return ""
}

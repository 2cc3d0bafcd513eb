package apply

import (
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// This file is the one place that reads the API server's prose, for the few answers in which it says a thing
// nowhere else. Each is tested on a real API server. Where its wording should change, the consequence is a vaguer
// reason, and a status that is not written where a value in it is too large or fits no schema.

// reasonless are the beginnings of messages that come as a 500 without a reason, without details and without
// causes, though it is the document that is at fault. The first three are server-side apply's: the document does
// not fit the schema; a value in it does not fit the Go type. The last two are the store's.
var reasonless = []struct{ prefix, reason string }{
	{"failed to create typed patch object (", ReasonSchemaMismatch},
	{"failed to convert patch object (", ReasonSchemaMismatch},
	{"failed to convert new object (", ReasonSchemaMismatch},
	{"etcdserver: request is too large", ReasonTooLarge},
	{"rpc error: code = ResourceExhausted desc = trying to send message larger than max", ReasonTooLarge},
}

func reasonProse(message string) string {
	for _, p := range reasonless {
		if strings.HasPrefix(message, p.prefix) {
			return p.reason
		}
	}
	return ReasonInternalError
}

// lacksRight reports whether a 403 is the authorizer's: a right is missing. Admission answers with the same code,
// reason and details where a quota, a policy or a webhook refuses the object; telling somebody to grant a right
// that is there would send them astray.
func lacksRight(message string) bool {
	return authorizer.MatchString(message)
}

// The second form is that of API servers before 1.31 where an apply finds nothing and would create: they give the
// authorizer's own reason alone, and RBAC has none, unless it found something wrong with a role.
var authorizer = regexp.MustCompile(`User ".*" cannot [a-z:-]+ (resource|path) "| is forbidden: (RBAC: .*)?$`)

// impersonator matches a 403 that refuses to take a request for somebody else's. The verb is impersonate, or one that
// begins so, where the API server knows rights to impersonate for certain requests only.
var impersonator = regexp.MustCompile(`User ".*" cannot impersonate[a-z:-]* resource "`)

// refusesDryRuns reports whether a 400 is for a webhook that declares side effects, whose message is the webhook's name and
// this.
func refusesDryRuns(message string) bool {
	return strings.HasSuffix(message, "does not support dry run")
}

// applyPrefix is what apply's errors begin with: the object again, and then the point.
var applyPrefix = regexp.MustCompile(`^failed to (create|convert) [a-z ]+ \([^)]*\)( to proper version)?: `)

// goValue is the offending value as Go prints it. It is cut off: it helps nobody, and may be a secret's.
var goValue = regexp.MustCompile(`(?m), got &.*$`)

// ownPort is this end of a connection, which is another one each time.
var ownPort = regexp.MustCompile(`\S+:\d+->`)

// plain takes the API server's internals out of a message, and what may differ in two answers to the same request.
func plain(message string) string {
	message = applyPrefix.ReplaceAllString(message, "")
	message = goValue.ReplaceAllString(message, "")
	if errs, several := strings.CutPrefix(message, "errors:\n"); several {
		lines := strings.Split(errs, "\n")
		slices.Sort(lines)
		message = "errors:\n" + strings.Join(lines, "\n")
	}
	return ownPort.ReplaceAllString(message, "")
}

// denials match who refused an object in admission: a policy and its binding, or a webhook. They stand before any text of
// theirs.
var denials = []*regexp.Regexp{
	regexp.MustCompile(`^[a-z0-9.-]+ "[^"]*" is forbidden: (ValidatingAdmissionPolicy '[a-z0-9.-]+'( with binding '[a-z0-9.-]+')? denied request)`),
	regexp.MustCompile(`^(admission webhook "[a-z0-9.-]+" denied the request)`),
}

// byAdmission reports whether a policy or a webhook gave an answer. The API server puts that before their own text.
func byAdmission(message string) bool {
	return slices.ContainsFunc(denials, func(by *regexp.Regexp) bool { return by.MatchString(message) })
}

// refusedField matches the field in an error of server-side apply, once its prefix is gone.
var refusedField = regexp.MustCompile(`^(\.[^\s:]+): `)

// shownProse takes out of a message what quotes no value: who refuses the object, or the field that does not fit the schema.
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

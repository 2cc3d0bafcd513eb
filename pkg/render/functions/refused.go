package functions

import (
	"strings"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// refused are functions of Helm or sprig that templates cannot use, with the reason and an alternative. Two renderings
// of one upstream must be equal, otherwise every rendering would be a change.
var refused = func() map[string][2]string {
	out := map[string][2]string{
		"tpl":    {"values are never executed", "write the template out, or choose with `if`"},
		"lookup": {"templates do not send requests", "declare the object in inputs and write input \"NAME\""},
		"fromYaml": {"a value never passes through a YAML parser",
			"let the value be structured in the upstream, or use fromJson"},
		"fromYamlArray": {"a value never passes through a YAML parser",
			"let the value be structured in the upstream, or use fromJson"},
		"call":            {"values cannot contain functions", ""},
		"buildCustomCert": {"it gives a value that a document cannot contain", "put the certificate into the upstream"},
		"derivePassword":  {"one call needs 32 MiB and much time", "put the password into a Secret that is an input"},
		"decryptAES":      {"templates do not decrypt", "put the value into a Secret that is an input"},
	}
	add := func(reason, fix, names string) {
		for _, name := range strings.Fields(names) {
			out[name] = [2]string{reason, fix}
		}
	}
	add("its result depends on the clock or the time zone, so that two renderings would differ",
		"put the text into the upstream",
		`now ago date dateInZone date_in_zone dateModify date_modify mustDateModify must_date_modify
		htmlDate htmlDateInZone toDate mustToDate durationRound unixEpoch`)
	add("its result is random, so that two renderings would differ",
		"put the value into the upstream; to distinguish objects, use sha256sum of a name",
		`randAlphaNum randAlpha randAscii randNumeric randBytes randInt shuffle uuidv4 bcrypt htpasswd encryptAES
		genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey`)
	add("it reads the environment of the process",
		"write the value into parameters and param \"NAME\" here", "env expandenv")
	add("it uses the network", "put the address into the upstream or into parameters", "getHostByName")
	// What nobody writes in manifests.
	const unused = "templates do not have it"
	add(unused, "", "hello initials swapcase untitle plural js duration adler32sum b32enc b32dec")
	add(unused, "use printf", "cat urlJoin")
	add(unused, "use trunc", "abbrev abbrevboth")
	add(unused, "write a block (|) with the lines", "wrap wrapWith")
	add(unused, "use trimAll", "trimall")
	add(unused, "use print", "println")
	add(unused, "use replace", "html")
	add(unused, "use max", "biggest")
	add(unused, "use append", "push mustPush")
	add(unused, "use untilStep and join", "seq")
	add(unused, "use slice", "chunk mustChunk")
	add(unused, "use the one without os", "osBase osClean osDir osExt")
	add(unused, "use hasPrefix \"/\"", "isAbs osIsAbs")
	return out
}()

// Refused returns why templates cannot use a function of Helm or sprig, and what to write instead.
func Refused(name string) (reason, fix string, isRefused bool) {
	r, ok := refused[name]
	return r[0], r[1], ok
}

// UnknownFix suggests what to write instead of a function that does not exist.
func UnknownFix(name string) string {
	switch name {
	case "self", "params", "inputs", "downstreams":
		return "this is CEL; in a template the upstream is the dot, as in .metadata.name, and there are " +
			"param, variable, input and downstream, each with \"NAME\""
	case "metadata", "spec", "status", "apiVersion", "kind", "data":
		return "a field begins with a dot: ." + name
	case "null", "None", "none":
		return "for nothing, write nothing; `omitempty` removes a key whose value is missing"
	}
	if near := spelling.Closest(name, append(Names(), "omitempty")); near != "" {
		return "did you mean " + near + "?"
	}
	return "the functions are those of text/template and sprig"
}

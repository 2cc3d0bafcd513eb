package render

// refused are functions of Helm or sprig that templates cannot use, with the reason and an alternative. Two renderings of one
// upstream must be equal, otherwise every rendering would be a change.
var refused = func() map[string][2]string {
	out := map[string][2]string{
		"tpl":             {"values are never executed", "write the template out, or choose with `if`"},
		"lookup":          {"templates do not send requests", "declare the object in inputs and write input \"NAME\""},
		"fromYaml":        {"a value never passes through a YAML parser", "let the value be structured in the upstream, or use fromJson"},
		"fromYamlArray":   {"a value never passes through a YAML parser", "let the value be structured in the upstream, or use fromJson"},
		"call":            {"values cannot contain functions", ""},
		"buildCustomCert": {"it gives a value that a document cannot contain", "put the certificate into the upstream"},
	}
	add := func(reason, fix string, names ...string) {
		for _, name := range names {
			out[name] = [2]string{reason, fix}
		}
	}
	add("its result depends on the clock or the time zone, so that two renderings would differ", "put the text into the upstream",
		"now", "ago", "date", "dateInZone", "date_in_zone", "dateModify", "date_modify", "mustDateModify", "must_date_modify",
		"htmlDate", "htmlDateInZone", "toDate", "mustToDate", "durationRound", "unixEpoch")
	add("its result is random, so that two renderings would differ",
		"put the value into the upstream; to distinguish objects, use sha256sum of a name",
		"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4", "bcrypt", "htpasswd", "encryptAES",
		"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey")
	add("it reads the environment of the process", "write the value into parameters and param \"NAME\" here", "env", "expandenv")
	add("it uses the network", "put the address into the upstream or into parameters", "getHostByName")
	return out
}()

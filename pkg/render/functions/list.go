package functions

import (
	"slices"
	"strings"

	"github.com/Masterminds/sprig/v3"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

var sprigFunctions = sprig.TxtFuncMap()

// The functions. Each is in one group.
const (
	// textTemplate has functions that text/template defines itself.
	textTemplate = "and or not lt le gt ge len index"
	// ofExecution has functions that read the data of an execution, or execute a template: pkg/render/program has them.
	ofExecution = "item param variable input downstream include"
	// light has functions of sprig that give one of their arguments, a part of one, or something small: nothing counts.
	light = `trunc substr trim trimSuffix trimPrefix hasPrefix hasSuffix
		empty all any ternary typeOf typeIs typeIsLike kindOf kindIs get hasKey pluck list tuple first mustFirst last mustLast`
	// counted has functions of sprig that make about as much as they read: both count.
	counted = `lower upper title contains nospace snakecase camelcase kebabcase regexQuoteMeta base dir clean ext urlParse
		sha1sum sha256sum sha512sum b64enc
		rest mustRest initial mustInitial reverse mustReverse compact mustCompact pick omit`
	// numeric has functions of sprig that compute with numbers, or read them: they refuse maps and lists, which are 0
	// there.
	numeric = `atoi int int64 float64 toDecimal add add1 sub div mod mul addf add1f subf divf mulf max min maxf minf ceil floor round`
)

// own are functions of ours: those of sprig whose result is not sorted, which change their argument, print an error
// into the document, replace zero by a default, or could make much of little; and toYaml.
var own = map[string]binding{
	"default": plain(defaultTo), "coalesce": plain(coalesce), "required": plain(required),
	"fail": plain(fail), "dig": plain(dig),
	"slice": plain(slice), "mustSlice": plain(slice),
	"b64dec": counting(fromBase64),
	"semver": one(semverParts), "semverCompare": two(semverCompare),

	"print": all(sprint), "printf": more(printf), "urlquery": all(urlquery), "quote": all(quote), "squote": all(squote),
	"toString": one(toString), "toStrings": one(toStrings), "sortAlpha": one(sortAlpha), "join": two(join),
	"indent": two(Indent), "nindent": two(Nindent), "repeat": two(repeat),
	"replace": three(replace), "trimAll": two(trimAll),
	"split": two(split), "splitList": two(splitList), "splitn": three(splitn),

	"regexMatch": two(regexMatch), "mustRegexMatch": two(regexMatch), "regexFind": two(regexFind),
	"mustRegexFind": two(regexFind),
	"regexFindAll":  three(regexFindAll), "mustRegexFindAll": three(regexFindAll),
	"regexSplit": three(regexSplit), "mustRegexSplit": three(regexSplit),
	"regexReplaceAll": three(regexReplaceAll), "mustRegexReplaceAll": three(regexReplaceAll),
	"regexReplaceAllLiteral": three(regexReplaceAllLiteral), "mustRegexReplaceAllLiteral": three(regexReplaceAllLiteral),

	"toYaml": one(values.YAML), "fromJson": one(fromJSON), "mustFromJson": one(fromJSON),
	"toJson": one(jsonAs(values.JSONEscaped)), "mustToJson": one(jsonAs(values.JSONEscaped)),
	"toRawJson": one(jsonAs(values.JSONRaw)), "mustToRawJson": one(jsonAs(values.JSONRaw)),
	"toPrettyJson": one(jsonAs(values.JSONPretty)), "mustToPrettyJson": one(jsonAs(values.JSONPretty)),

	"eq": more(eq), "ne": two(ne), "deepEqual": two(deepEqual), "deepCopy": one(values.Copy),
	"mustDeepCopy": one(values.Copy),
	"until":        one(until), "untilStep": three(untilStep),
	"concat": all(concat), "append": two(appendItem), "mustAppend": two(appendItem), "prepend": two(prepend),
	"mustPrepend": two(prepend),
	"has":         two(has), "mustHas": two(has), "uniq": one(uniq), "mustUniq": one(uniq), "without": more(without),
	"mustWithout": more(without),
	"dict":        all(dict), "keys": all(keys), "values": one(mapValues), "set": three(setKey), "unset": two(unset),
	"merge": more(merging("mustMerge")), "mustMerge": more(merging("mustMerge")),
	"mergeOverwrite": more(merging("mustMergeOverwrite")), "mustMergeOverwrite": more(merging("mustMergeOverwrite")),
}

// list is the functions by name; those of text/template and of an execution are nil.
var list = func() map[string]binding {
	out := map[string]binding{}
	add := func(names string, bind func(f any) binding) {
		for _, name := range strings.Fields(names) {
			out[name] = bind(sprigFunctions[name])
		}
	}
	add(textTemplate+" "+ofExecution, func(any) binding { return nil })
	add(light, plain)
	add(counted, counting)
	add(numeric, numbers)
	for name, bind := range own {
		out[name] = bind
	}
	return out
}()

// Bind returns a function as an execution calls it, with the Budget that is at the pointer when it is called. It
// returns nil for a function of text/template or of an execution, and for one that does not exist.
func Bind(name string, at **values.Budget) any {
	if bind := list[name]; bind != nil {
		return bind(at)
	}
	return nil
}

// Exists reports whether a template can call a function.
func Exists(name string) bool {
	_, ok := list[name]
	return ok
}

// Names returns the sorted names.
func Names() []string { return slices.Clone(names) }

var names = values.SortedKeys(list)

func jsonAs(style values.JSONStyle) func(*values.Budget, any) (string, error) {
	return func(b *values.Budget, v any) (string, error) { return values.JSON(b, v, style) }
}

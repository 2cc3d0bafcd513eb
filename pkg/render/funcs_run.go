package render

import "github.com/Masterminds/sprig/v3"

// runFunctions need the execution: they record holes, read its data, or what they make counts against its limits.
var runFunctions = map[string]func(*run) any{
	fnIndent:  func(r *run) any { return r.indentLaidOut },
	fnNindent: func(r *run) any { return r.nindentLaidOut },
	fnTrim:    func(r *run) any { return r.trimLaidOut },
	fnEmit:    func(r *run) any { return r.emit },
	fnTick:    func(r *run) any { return r.tick },
	fnEnter:   func(r *run) any { return r.enter },
	fnLeave:   func(r *run) any { return r.leave },
	fnCharge:  func(r *run) any { return r.charge },

	"param":   func(r *run) any { return r.param },
	"input":   func(r *run) any { return r.input },
	"include": func(r *run) any { return r.include },

	"print":    func(r *run) any { return r.print },
	"println":  func(r *run) any { return r.println },
	"printf":   func(r *run) any { return r.printf },
	"cat":      func(r *run) any { return r.cat },
	"toString": func(r *run) any { return r.toString },
	"quote":    func(r *run) any { return r.quote },
	"squote":   func(r *run) any { return r.squote },
	"indent":   func(r *run) any { return r.indent },
	"nindent":  func(r *run) any { return r.nindent },
	"repeat":   func(r *run) any { return r.repeat },
	"replace":  func(r *run) any { return r.replace },
	"join":     func(r *run) any { return r.join },

	"toYaml":           func(r *run) any { return r.yamlText },
	"toJson":           jsonFunction(jsonEscaped),
	"mustToJson":       jsonFunction(jsonEscaped),
	"toRawJson":        jsonFunction(jsonRaw),
	"mustToRawJson":    jsonFunction(jsonRaw),
	"toPrettyJson":     jsonFunction(jsonPretty),
	"mustToPrettyJson": jsonFunction(jsonPretty),
	"derivePassword":   func(r *run) any { return r.derivePassword },

	"until":              func(r *run) any { return r.until },
	"untilStep":          func(r *run) any { return r.untilStep },
	"seq":                func(r *run) any { return r.seq },
	"concat":             func(r *run) any { return r.concat },
	"append":             func(r *run) any { return r.append },
	"mustAppend":         func(r *run) any { return r.append },
	"push":               func(r *run) any { return r.append },
	"mustPush":           func(r *run) any { return r.append },
	"prepend":            func(r *run) any { return r.prepend },
	"mustPrepend":        func(r *run) any { return r.prepend },
	"set":                func(r *run) any { return r.set },
	"unset":              func(r *run) any { return r.unset },
	"merge":              mergeFunction("mustMerge"),
	"mustMerge":          mergeFunction("mustMerge"),
	"mergeOverwrite":     mergeFunction("mustMergeOverwrite"),
	"mustMergeOverwrite": mergeFunction("mustMergeOverwrite"),
	"deepCopy":           func(r *run) any { return r.deepCopy },
	"mustDeepCopy":       func(r *run) any { return r.deepCopy },
}

// siteFunctions are the functions that rewriting binds to a site.
var siteFunctions = map[string]func(r *run, id int) any{
	fnGet:  func(r *run, id int) any { return func(base any) (any, error) { return r.get(id, base) } },
	fnNeed: func(r *run, id int) any { return func(base any) (any, error) { return r.need(id, base) } },
	fnPut:  func(r *run, id int) any { return func(base any) *nothing { return r.put(id, base) } },
	fnHole: func(r *run, id int) any { return func(base any) (laidOut, error) { return r.hole(id, base) } },
	fnInclude: func(r *run, id int) any {
		return func(name string, data any) (laidOut, error) { return r.includeHoles(id, name, data) }
	},
}

// growing are functions of others whose result can be longer than what they are given; in a loop that feeds a
// variable back, each such step counts.
var growing = map[string]bool{
	"b64enc": true, "b32enc": true, "html": true, "js": true, "urlquery": true, "wrap": true, "wrapWith": true,
	"regexReplaceAll": true, "mustRegexReplaceAll": true, "regexReplaceAllLiteral": true, "mustRegexReplaceAllLiteral": true,
	"regexQuoteMeta": true, "snakecase": true, "kebabcase": true, "urlJoin": true,
}

func jsonFunction(style jsonStyle) func(*run) any {
	return func(r *run) any { return func(v any) (string, error) { return r.jsonText(v, style) } }
}

func mergeFunction(name string) func(*run) any {
	merge := sprig.TxtFuncMap()[name].(func(map[string]any, ...map[string]any) (any, error))
	return func(r *run) any {
		return func(dst map[string]any, srcs ...map[string]any) (any, error) { return r.merge(merge, dst, srcs) }
	}
}

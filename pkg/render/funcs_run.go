package render

import (
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// runFunctions need the execution: they record holes, read its data, or count against its limits.
var runFunctions = map[string]func(*run) any{
	fnIndent:  func(r *run) any { return r.indentLaidOut },
	fnNindent: func(r *run) any { return r.nindentLaidOut },
	fnTrim:    func(r *run) any { return r.trimLaidOut },
	fnEmit:    func(r *run) any { return r.emit },
	fnLeave:   func(r *run) any { return r.exit },
	fnOver:    func(r *run) any { return r.rangeCost },

	"param":      func(r *run) any { return r.param },
	"variable":   func(r *run) any { return r.variable },
	"input":      func(r *run) any { return r.input },
	"downstream": func(r *run) any { return func(name string) any { return r.input(DownstreamKey(name)) } },
	"item":       func(r *run) any { return func() any { return r.data.Item } },
	"include":    func(r *run) any { return r.include },

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
	"eq":       func(r *run) any { return r.eq },
	"ne":       func(r *run) any { return r.ne },
	"html":     func(r *run) any { return r.escaped(6, template.HTMLEscaper) },
	"js":       func(r *run) any { return r.escaped(6, template.JSEscaper) },
	"urlquery": func(r *run) any { return r.escaped(3, template.URLQueryEscaper) },

	"toStrings":    func(r *run) any { return r.toStrings },
	"sortAlpha":    func(r *run) any { return r.sortAlpha },
	"fromJson":     func(r *run) any { return r.fromJSON },
	"mustFromJson": func(r *run) any { return r.fromJSON },
	"deepEqual":    func(r *run) any { return r.deepEqual },
	"has":          func(r *run) any { return r.has },
	"mustHas":      func(r *run) any { return r.has },
	"uniq":         func(r *run) any { return r.uniq },
	"mustUniq":     func(r *run) any { return r.uniq },
	"without":      func(r *run) any { return r.without },
	"mustWithout":  func(r *run) any { return r.without },
	"chunk":        func(r *run) any { return r.chunk },
	"mustChunk":    func(r *run) any { return r.chunk },
	"dict":         func(r *run) any { return r.dict },
	"keys":         func(r *run) any { return r.keys },
	"values":       func(r *run) any { return r.mapValues },

	"regexMatch":                 func(r *run) any { return r.regexMatch },
	"mustRegexMatch":             func(r *run) any { return r.regexMatch },
	"regexFind":                  func(r *run) any { return r.regexFind },
	"mustRegexFind":              func(r *run) any { return r.regexFind },
	"regexFindAll":               func(r *run) any { return r.regexFindAll },
	"mustRegexFindAll":           func(r *run) any { return r.regexFindAll },
	"regexSplit":                 func(r *run) any { return r.regexSplit },
	"mustRegexSplit":             func(r *run) any { return r.regexSplit },
	"regexReplaceAll":            func(r *run) any { return r.regexReplaceAll },
	"mustRegexReplaceAll":        func(r *run) any { return r.regexReplaceAll },
	"regexReplaceAllLiteral":     func(r *run) any { return r.regexReplaceAllLiteral },
	"mustRegexReplaceAllLiteral": func(r *run) any { return r.regexReplaceAllLiteral },

	"toYaml":           func(r *run) any { return func(v any) (string, error) { return r.yamlText(v) } },
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

// siteFunctions are the functions that the rewrite binds to a site.
var siteFunctions = map[string]func(r *run, id int) any{
	fnGet:   func(r *run, id int) any { return func(base any) (any, error) { return r.get(id, base) } },
	fnNeed:  func(r *run, id int) any { return func(base any) (any, error) { return r.need(id, base) } },
	fnPut:   func(r *run, id int) any { return func(base any) *nothing { return r.put(id, base) } },
	fnTick:  func(r *run, id int) any { return func() *nothing { return r.tick(id) } },
	fnEnter: func(r *run, id int) any { return func() *nothing { return r.enter(id) } },
	fnHole:  func(r *run, id int) any { return func(base any) (layoutText, error) { return r.hole(id, base) } },
	fnInclude: func(r *run, id int) any {
		return func(name string, data any) (layoutText, error) { return r.includeHoles(id, name, data) }
	},
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

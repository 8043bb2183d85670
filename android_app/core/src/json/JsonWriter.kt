package org.ondeviceprofiler.core

/** Return the one-line text of a value, without a line's end. Throws IllegalArgumentException for NaN and infinity. */
public fun Json.write(): String = StringBuilder().also { append(it, this) }.toString()

/** Make an object of names and values: numbers, text, booleans, null, lists, maps by text, words, and JSON. */
public fun jsonOf(vararg members: Pair<String, Any?>): JsonObject {
    val made = LinkedHashMap<String, Json>()
    for ((name, value) in members) made[name] = asJson(value)
    return JsonObject(made)
}

private fun asJson(value: Any?): Json =
    when (value) {
        null -> JsonNull
        is Json -> value
        is Writable -> value.toJson()
        is Word -> JsonText(value.word)
        is String -> JsonText(value)
        is Boolean -> JsonBoolean(value)
        is Int -> JsonInteger(value.toLong())
        is Long -> JsonInteger(value)
        is Double -> JsonReal(value)
        is List<*> -> JsonArray(value.map(::asJson))
        is Map<*, *> -> JsonObject(value.entries.associate { (key, item) -> key.toString() to asJson(item) })
        else -> throw IllegalArgumentException("no JSON for ${value.javaClass.name}")
    }

private fun append(out: StringBuilder, value: Json) {
    when (value) {
        is JsonObject -> appendObject(out, value)
        is JsonArray -> appendArray(out, value)
        is JsonText -> appendText(out, value.value)
        is JsonInteger -> out.append(value.value)
        is JsonReal -> appendReal(out, value.value)
        is JsonBoolean -> out.append(value.value)
        JsonNull -> out.append("null")
    }
}

private fun appendObject(out: StringBuilder, value: JsonObject) {
    var sign = '{'
    for ((name, member) in value.members) {
        out.append(sign)
        appendText(out, name)
        out.append(':')
        append(out, member)
        sign = ','
    }
    out.append(if (value.members.isEmpty()) "{}" else "}")
}

private fun appendArray(out: StringBuilder, value: JsonArray) {
    out.append('[')
    value.items.forEachIndexed { index, item ->
        if (index > 0) out.append(',')
        append(out, item)
    }
    out.append(']')
}

private fun appendReal(out: StringBuilder, value: Double) {
    require(!value.isNaN() && !value.isInfinite()) { "JSON has no $value" }
    out.append(value)
}

private fun appendText(out: StringBuilder, value: String) {
    out.append('"')
    for (sign in value) {
        when {
            sign == '"' || sign == '\\' -> out.append('\\').append(sign)
            sign < ' ' -> out.append("\\u00").append(sign.code.toString(16).padStart(2, '0'))
            else -> out.append(sign)
        }
    }
    out.append('"')
}

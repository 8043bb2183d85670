package org.ondeviceprofiler.core

/** Reads strings out of JSON text; `end` is the index behind the last one. */
internal class JsonStrings(private val text: String) {
    var end: Int = 0
        private set

    /** Read the string whose opening quote is at `start`. Throws InvalidJson. */
    fun read(start: Int): String {
        val plainEnd = firstNotPlain(start + 1)
        if (plainEnd < text.length && text[plainEnd] == '"') {
            end = plainEnd + 1
            return text.substring(start + 1, plainEnd)
        }
        return withEscapes(start)
    }

    private fun firstNotPlain(from: Int): Int {
        var at = from
        while (at < text.length && text[at] != '"' && text[at] != '\\' && text[at] >= ' ') at += 1
        return at
    }

    private fun withEscapes(start: Int): String {
        val out = StringBuilder()
        var at = start + 1
        while (true) {
            val stop = firstNotPlain(at)
            out.append(text, at, stop)
            if (stop >= text.length) throw InvalidJson("a string that does not end", start)
            if (text[stop] == '"') {
                end = stop + 1
                return checked(out.toString(), start)
            }
            if (text[stop] != '\\') throw InvalidJson("a control character in a string", stop)
            at = escape(stop, out)
        }
    }

    private fun escape(backslash: Int, out: StringBuilder): Int {
        val letter = text.getOrNull(backslash + 1) ?: throw InvalidJson("a string that does not end", backslash)
        if (letter == 'u') {
            out.append(unit(backslash + 2))
            return backslash + 6
        }
        val known = "\"\\/bfnrt".indexOf(letter)
        if (known < 0) throw InvalidJson("an unknown escape", backslash)
        out.append("\"\\/\b\u000c\n\r\t"[known])
        return backslash + 2
    }

    private fun unit(from: Int): Char {
        val digits = if (from + 4 <= text.length) text.substring(from, from + 4) else ""
        if (digits.length < 4 || !digits.all { it in '0'..'9' || it in 'a'..'f' || it in 'A'..'F' }) {
            throw InvalidJson("an escape without four digits", from)
        }
        return digits.toInt(16).toChar()
    }

    /** Half of a surrogate pair could not be written again as UTF-8. */
    private fun checked(value: String, start: Int): String {
        var at = 0
        while (at < value.length) {
            val paired = value[at].isHighSurrogate() && at + 1 < value.length && value[at + 1].isLowSurrogate()
            if (value[at].isSurrogate() && !paired) throw InvalidJson("half of a surrogate pair", start)
            at += if (paired) 2 else 1
        }
        return value
    }
}

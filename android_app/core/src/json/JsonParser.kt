package org.ondeviceprofiler.core

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException

/** Read one JSON value that fills `data` (UTF-8). Throws InvalidJson: also for a key that stands twice in an object. */
public fun parseJson(data: ByteArray): Json = JsonParser(decodedUtf8(data)).whole()

private fun decodedUtf8(data: ByteArray): String =
    try {
        Charsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data)).toString()
    } catch (_: CharacterCodingException) {
        throw InvalidJson("not UTF-8", 0)
    }

private const val DEEPEST = 64

/** Walks through the text once; nothing that RFC 8259 does not allow gets through. */
internal class JsonParser(private val text: String) {
    private var at = 0
    private val strings = JsonStrings(text)
    private val numbers = JsonNumbers(text)

    fun whole(): Json {
        val value = value(0)
        space()
        if (at < text.length) throw InvalidJson("more than one value", at)
        return value
    }

    private fun value(depth: Int): Json {
        if (depth > DEEPEST) throw InvalidJson("more than $DEEPEST levels", at)
        space()
        return when (peek()) {
            '{' -> objectAt(depth)
            '[' -> arrayAt(depth)
            '"' -> JsonText(string())
            't' -> word("true", JsonBoolean(true))
            'f' -> word("false", JsonBoolean(false))
            'n' -> word("null", JsonNull)
            else -> number()
        }
    }

    private fun objectAt(depth: Int): Json {
        val members = LinkedHashMap<String, Json>()
        between('{', '}') {
            val key = keyAt()
            if (key in members) throw InvalidJson("the key '$key' stands twice in one object", at)
            members[key] = value(depth + 1)
        }
        return JsonObject(members)
    }

    private fun keyAt(): String {
        space()
        if (peek() != '"') throw InvalidJson("no key", at)
        val key = string()
        space()
        take(':')
        return key
    }

    private fun arrayAt(depth: Int): Json {
        val items = ArrayList<Json>()
        between('[', ']') { items.add(value(depth + 1)) }
        return JsonArray(items)
    }

    /** Read elements that a comma parts, from the opening sign to the closing one. */
    private inline fun between(open: Char, close: Char, element: () -> Unit) {
        take(open)
        space()
        if (peek() == close) return take(close)
        while (true) {
            element()
            space()
            if (peek() == close) return take(close)
            take(',')
        }
    }

    private fun string(): String {
        val value = strings.read(at)
        at = strings.end
        return value
    }

    private fun number(): Json {
        val value = numbers.read(at)
        at = numbers.end
        return value
    }

    private fun word(word: String, value: Json): Json {
        if (!text.startsWith(word, at)) throw InvalidJson("no value", at)
        at += word.length
        return value
    }

    private fun peek(): Char = if (at < text.length) text[at] else throw InvalidJson("it ends too early", at)

    private fun take(sign: Char) {
        if (peek() != sign) throw InvalidJson("no '$sign'", at)
        at += 1
    }

    private fun space() {
        while (at < text.length && text[at] in " \t\n\r") at += 1
    }
}

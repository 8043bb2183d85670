package org.ondeviceprofiler.core

/** Reads numbers out of JSON text; `end` is the index behind the last one. */
internal class JsonNumbers(private val text: String) {
    var end: Int = 0
        private set

    /** Read the number at `start`. Throws InvalidJson where there is none, or one that 64 bits do not hold. */
    fun read(start: Int): Json {
        val whole = digits(if (at(start) == '-') start + 1 else start)
        var stop = whole
        if (at(stop) == '.') stop = someDigits(stop + 1)
        if (at(stop) == 'e' || at(stop) == 'E') {
            stop = someDigits(if (at(stop + 1) == '+' || at(stop + 1) == '-') stop + 2 else stop + 1)
        }
        end = stop
        val token = text.substring(start, stop)
        return if (stop == whole) integer(token, start) else real(token, start)
    }

    private fun at(index: Int): Char = if (index < text.length) text[index] else ' '

    private fun digits(from: Int): Int {
        val stop = someDigits(from)
        if (at(from) == '0' && stop > from + 1) throw InvalidJson("a number with leading zeros", from)
        return stop
    }

    private fun someDigits(from: Int): Int {
        var stop = from
        while (at(stop) in '0'..'9') stop += 1
        if (stop == from) throw InvalidJson("no value", from)
        return stop
    }

    private fun integer(token: String, start: Int): Json =
        JsonInteger(token.toLongOrNull() ?: throw InvalidJson("an integer of more than 64 bits", start))

    private fun real(token: String, start: Int): Json {
        val value = token.toDouble()
        if (value.isInfinite()) throw InvalidJson("a number out of range", start)
        return JsonReal(value)
    }
}

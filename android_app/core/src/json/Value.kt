package org.ondeviceprofiler.core

/** A value inside a record, with the path that an error names. */
internal class Value(private val json: Json, private val path: String) {
    fun text(): String = (json as? JsonText ?: throw wrong("text")).value

    fun integer(): Long = (json as? JsonInteger ?: throw wrong("an integer")).value

    fun int(): Int {
        val value = integer()
        if (value != value.toInt().toLong()) throw broken("an integer of more than 32 bits")
        return value.toInt()
    }

    fun isInteger(): Boolean = json is JsonInteger

    fun real(): Double =
        when (json) {
            is JsonReal -> json.value
            is JsonInteger -> json.value.toDouble()
            else -> throw wrong("a number")
        }

    fun boolean(): Boolean = (json as? JsonBoolean ?: throw wrong("true or false")).value

    fun <T : Any> orNull(read: Value.() -> T): T? = if (json == JsonNull) null else read()

    fun <T> list(read: Value.() -> T): List<T> {
        val items = (json as? JsonArray ?: throw wrong("an array")).items
        return items.mapIndexed { index, item -> Value(item, "$path[$index]").read() }
    }

    fun <T> map(read: Value.() -> T): Map<String, T> =
        members().mapValues { (name, member) -> Value(member, "$path.$name").read() }

    /** Read a closed record: a key that `read` does not ask for is an error. */
    fun <T> record(read: Fields.() -> T): T {
        val fields = Fields(members(), path)
        return fields.read().also { fields.end() }
    }

    fun <T : Word> word(words: List<T>): T {
        val found = text()
        return words.firstOrNull { it.word == found } ?: throw broken("'$found' is none of ${words.map { it.word }}")
    }

    fun oneOf(vararg words: String): String {
        val found = text()
        return if (found in words) found else throw broken("'$found' is none of ${words.toList()}")
    }

    /** Read a name that plug-ins may add to. */
    fun name(): String {
        val found = text()
        return if (NAME.matches(found)) found else throw broken("'$found' is no name like $NAME")
    }

    fun broken(what: String): InvalidRecord = InvalidRecord("$what - at `$path`")

    private fun members(): Map<String, Json> = (json as? JsonObject ?: throw wrong("an object")).members

    private fun wrong(wanted: String): InvalidRecord = broken("expected $wanted, got ${kindOf(json)}")

    private companion object {
        val NAME = Regex("[a-z][a-z0-9_-]{0,63}")

        fun kindOf(json: Json): String =
            when (json) {
                is JsonObject -> "an object"
                is JsonArray -> "an array"
                is JsonText -> "text"
                is JsonInteger -> "an integer"
                is JsonReal -> "a number"
                is JsonBoolean -> "a boolean"
                JsonNull -> "null"
            }
    }
}

package org.ondeviceprofiler.core

/** The members of a closed record; whatever was not asked for is unknown. */
internal class Fields(private val members: Map<String, Json>, private val path: String) {
    private val asked = HashSet<String>()

    /** Return a member that must be there. Throws InvalidRecord. */
    fun need(name: String): Value = this[name] ?: throw InvalidRecord("it lacks the key `$name` - at `$path`")

    /** Return a member, or null where it is left out and its default counts. */
    operator fun get(name: String): Value? {
        asked.add(name)
        return members[name]?.let { Value(it, "$path.$name") }
    }

    /** Read the format that a record is written in. Throws InvalidRecord where it is newer than this runner. */
    fun schemaVersion(default: Int): Int {
        val version = this["schema_version"]?.integer() ?: return default
        if (version > SCHEMA_VERSION) {
            val formats = "written in format $version, this runner reads up to $SCHEMA_VERSION"
            throw InvalidRecord("$formats. Install a newer runner. - at `$path`")
        }
        if (version < 1) throw InvalidRecord("there is no format $version - at `$path`")
        return version.toInt()
    }

    /** Throw InvalidRecord where a member is there that nobody asked for. */
    fun end() {
        val unknown = members.keys.firstOrNull { it !in asked } ?: return
        throw InvalidRecord("it has the unknown key `$unknown` - at `$path`")
    }
}

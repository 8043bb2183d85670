package org.ondeviceprofiler.virtual

import java.io.IOException
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

class ControlChannelTest {
    @Test
    fun `a refusal is told in the model's words`() {
        StandInModel().use { model ->
            val refused = assertThrows(ModelRefused::class.java) { model.channel().ask("dance") }
            assertEquals("nothing to do with dance", refused.what)
        }
    }

    @Test
    fun `a model that hangs up is lost`() {
        StandInModel().use { model ->
            assertThrows(ModelLost::class.java) { model.channel().ask("hang_up") }
        }
    }

    @Test
    fun `where no model listens the address is named`() {
        val error = assertThrows(IOException::class.java) { ControlChannel.open("127.0.0.1", 1) }
        assertTrue("no model answers at 127.0.0.1:1" in error.message.orEmpty())
    }
}

import java.nio.charset.StandardCharsets;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;

/** Runs statements that it reads from its input, as an application with JDBC does, and prints what they give. */
class Reader {
    static final String STATEMENT = "\u001d", ROW = "\u001e", FIELD = "\u001f";

    public static void main(String[] arguments) throws Exception {
        var input = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        var answers = new ArrayList<String>();
        try (var connection = DriverManager.getConnection(arguments[0])) {
            for (var asked : input.split(STATEMENT)) {
                var fields = asked.split(FIELD, -1);
                try (var statement = connection.prepareStatement(fields[0].replaceAll("\\$\\d+", "?"))) {
                    for (int place = 1; place < fields.length; place++) {
                        give(statement, place, fields[place]);
                    }
                    answers.add(rows(statement.executeQuery()));
                }
            }
        }
        System.out.write(String.join(STATEMENT, answers).getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    static void give(PreparedStatement statement, int place, String field) throws Exception {
        var value = field.substring(field.indexOf('=') + 1);
        if (field.startsWith("timestamptz=")) {
            statement.setObject(place, OffsetDateTime.parse(value));
        } else {
            statement.setString(place, value);
        }
    }

    static String rows(ResultSet result) throws Exception {
        var rows = new ArrayList<String>();
        while (result.next()) {
            List<String> row = new ArrayList<>();
            for (int column = 1; column <= result.getMetaData().getColumnCount(); column++) {
                var value = result.getString(column);
                row.add(value == null ? "" : value);
            }
            rows.add(String.join(FIELD, row));
        }
        return String.join(ROW, rows);
    }
}

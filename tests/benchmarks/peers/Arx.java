import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.DataHandle;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;

/**
 * Publishes a case by ARX: java -cp ARX.jar Arx.java CASE OUT k:5|distinct:3 local|global SENSITIVE COLUMN...
 * CASE is a folder as tests/benchmarks/cases.py writes it. Its loss is ARX's own; local recodes again and again, in steps
 * of a thousandth of the rows, what the best global recoding suppressed, global suppresses at most a tenth of the rows.
 */
public class Arx {
    public static void main(String[] args) throws Exception {
        File home = new File(args[0]);
        String[] model = args[2].split(":");
        boolean local = args[3].equals("local");
        List<String> columns = Arrays.asList(args).subList(5, args.length);
        Data data = Data.create(new File(home, home.getName() + ".csv"), StandardCharsets.UTF_8, ';');
        DataHandle head = data.getHandle();
        for (int i = 0; i < head.getNumColumns(); i++)
            data.getDefinition().setAttributeType(head.getAttributeName(i), AttributeType.INSENSITIVE_ATTRIBUTE);
        for (String column : columns) {
            File tree = new File(home, "hierarchies/" + home.getName() + "_hierarchy_" + column + ".csv");
            data.getDefinition().setAttributeType(column, Hierarchy.create(tree, StandardCharsets.UTF_8, ';'));
        }
        ARXConfiguration config = ARXConfiguration.create(local ? 0.999 : 0.1);
        int least = Integer.parseInt(model[1]);
        if (model[0].equals("distinct")) {
            data.getDefinition().setAttributeType(args[4], AttributeType.SENSITIVE_ATTRIBUTE);
            config.addPrivacyModel(new DistinctLDiversity(args[4], least));
        } else config.addPrivacyModel(new KAnonymity(least));
        config.setQualityModel(Metric.createLossMetric(local ? 0 : 0.5));
        ARXResult result = new ARXAnonymizer().anonymize(data, config);
        DataHandle out = result.getOutput(false);
        if (local) result.optimizeIterativeFast(out, 0.001);
        out.save(new File(args[1]), ';');
    }
}
